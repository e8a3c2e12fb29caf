/** The currencies of ISO 4217 (list one, January 2026), and how many decimals their amounts have. */

/** Without the codes of funds and metals, such as XAU: no account has them. */
const withTwoDigits =
  'AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CNY COP CRC CUP ' +
  'CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS INR IRR JMD KES ' +
  'KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK ' +
  'NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB ' +
  'TJS TMT TOP TRY TTD TWD TZS UAH USD UYU UZS VED VES WST XCD XCG YER ZAR ZMW ZWG';

const withoutDigits = 'BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF';
const withThreeDigits = 'BHD IQD JOD KWD LYD OMR TND';

/** Replaced since 2020: some banks still list them. */
const withdrawn = 'ANG BGN CUC HRK MRO SLL STD VEF ZWL BYR';

const codesIn = (list: string, digits: number) => list.split(' ').map((code) => [code, digits] as const);

const digitsOf: ReadonlyMap<string, number> = new Map([
  ...codesIn(withTwoDigits, 2),
  ...codesIn(withoutDigits, 0),
  ...codesIn(withThreeDigits, 3),
]);
const withdrawnCodes: ReadonlySet<string> = new Set(withdrawn.split(' '));

/** How many decimals an amount can have; `undefined` if no country uses the currency today. */
export const fractionDigitsOf = (currency: string): number | undefined => digitsOf.get(currency);

export const isWithdrawn = (currency: string): boolean => withdrawnCodes.has(currency);
