/**
 * Content models of pain.001 (CustomerCreditTransferInitiation), written from the message definition reports of ISO 20022 for the
 * versions 02, 03, 08 and 09. They contain what initiations of a TPP use: identifiers, dates, amounts, parties, accounts, agents and
 * remittance texts. Cheques, taxes and regulatory reports may contain anything.
 */

import {
  anyText,
  type ContentModel,
  choice,
  code,
  collapsed,
  matching,
  oneOrMore,
  optional,
  repeated,
  required,
  sequence,
  text,
} from './content-model.ts';
import { isXmlDateAndTime } from './dates.ts';

/** What the namespace says about a document. */
export interface Dialect {
  readonly version: Version;
  /** Whether it is a variant of the German banks (DK), with only the elements that a SEPA credit transfer needs. */
  readonly isSepaVariant: boolean;
  /** Whether there is a model for the namespace. Otherwise the nearest version is compared. */
  readonly isKnown: boolean;
}

type Version = 2 | 3 | 8 | 9;

/** @returns `undefined` if this is no namespace of pain.001 */
export function dialectOf(namespace: string): Dialect | undefined {
  const known = dialects.get(namespace);
  if (known) return known;
  // National variants have namespaces of their own, such as those of Switzerland and Austria.
  const [, version] = /(?:^|[:/$])pain\.001\.\d{3}\.(\d{2})(?:$|[.:])/.exec(namespace.slice(0, 200)) ?? [];
  return version === undefined ? undefined : { ...nearest(Number(version)), isKnown: false };
}

const iso = (version: Version): Dialect => ({ version, isSepaVariant: false, isKnown: true });
const sepa: Dialect = { version: 3, isSepaVariant: true, isKnown: true };
const prefix = 'urn:iso:std:iso:20022:tech:xsd:';

const dialects: ReadonlyMap<string, Dialect> = new Map([
  [`${prefix}pain.001.001.02`, iso(2)],
  [`${prefix}pain.001.001.03`, iso(3)],
  [`${prefix}pain.001.001.08`, iso(8)],
  [`${prefix}pain.001.001.09`, iso(9)],
  [`${prefix}pain.001.002.03`, sepa],
  [`${prefix}pain.001.003.03`, sepa],
]);

function nearest(version: number): Dialect {
  if (version < 3) return iso(2);
  if (version < 8) return iso(3);
  return version === 8 ? iso(8) : iso(9);
}

/** The name of the message's element: the oldest version has its own name there. */
export const messageElement = ({ version }: Dialect): string =>
  version === 2 ? 'pain.001.001.02' : 'CstmrCdtTrfInitn';

/**
 * The model of `Document`.
 *
 * @param isSepa whether the payment product is a SEPA credit transfer, which needs a creditor with name and account
 */
export function documentModel(dialect: Dialect, isSepa: boolean): ContentModel {
  const { version, isSepaVariant } = dialect;
  const key = `${version} ${isSepaVariant} ${isSepa}`;
  const known = models.get(key);
  if (known) return known;
  const model = sequence({
    [messageElement(dialect)]: required(initiation(version, isSepaVariant, isSepa || isSepaVariant)),
  });
  models.set(key, model);
  return model;
}

/** Built when a document needs them: 16 at most. */
const models = new Map<string, ContentModel>();

function initiation(version: Version, isSepaVariant: boolean, isSepa: boolean): ContentModel {
  const from = <Particle>(first: Version, particle: Particle) => (version >= first ? particle : undefined);
  const only2 = <Particle>(particle: Particle) => (version === 2 ? particle : undefined);

  const name = text(version === 2 || isSepaVariant ? 70 : 140);
  const address = version === 2 ? undefined : version === 9 ? address24 : address6;
  const party = {
    Nm: optional(name),
    PstlAdr: optional(address),
    Id: optional(),
    CtryOfRes: optional(country),
    CtctDtls: from(3, optional()),
  };
  const debtor = sequence(party);
  const creditor = isSepa ? sequence({ ...party, Nm: required(name) }) : debtor;

  const account = sequence({
    Id: required(version === 2 ? account2 : account4),
    Tp: optional(),
    Ccy: optional(currency),
    Nm: optional(text(70)),
    Prxy: from(9, optional()),
  });
  const institution = sequence({
    [version === 3 ? 'BIC' : 'BICFI']: optional(bic),
    ClrSysMmbId: optional(),
    LEI: from(9, optional()),
    Nm: optional(name),
    PstlAdr: optional(address),
    Othr: optional(),
  });
  const agent =
    version === 2 ? undefined : sequence({ FinInstnId: required(institution), BrnchId: optional() });

  const service = version === 2 ? undefined : codeOrProprietary(4);
  const paymentType = sequence({
    InstrPrty: optional(code('HIGH', 'NORM')),
    SvcLvl: version === 9 ? repeated(service) : optional(service),
    ClrChanl: only2(optional()),
    LclInstrm: optional(codeOrProprietary(35)),
    CtgyPurp: optional(version === 2 ? anyText : codeOrProprietary(4)),
  });

  const header = sequence({
    MsgId: required(text(35)),
    CreDtTm: required(dateAndTime),
    Authstn: repeated(),
    BtchBookg: only2(optional(truth)),
    NbOfTxs: required(count),
    CtrlSum: optional(decimal),
    Grpg: only2(required(code('SNGL', 'GRPD', 'MIXD'))),
    InitgPty: required(debtor),
    FwdgAgt: optional(agent),
  });

  const equivalent = sequence({ Amt: required(anyText), CcyOfTrf: required(currency) });
  const ifNoCreditor = isSepa ? 'harmful' : 'notable';
  const transfer = sequence({
    PmtId: required(
      sequence({
        InstrId: optional(text(35)),
        EndToEndId: required(text(35)),
        UETR: from(9, optional(uuid4)),
      }),
    ),
    PmtTpInf: optional(paymentType),
    Amt: required(choice({ InstdAmt: anyText, ...(isSepaVariant ? {} : { EqvtAmt: equivalent }) })),
    XchgRateInf: optional(),
    ChrgBr: optional(chargeBearer),
    ChqInstr: optional(),
    UltmtDbtr: optional(debtor),
    IntrmyAgt1: optional(agent),
    IntrmyAgt1Acct: optional(account),
    IntrmyAgt2: optional(agent),
    IntrmyAgt2Acct: optional(account),
    IntrmyAgt3: optional(agent),
    IntrmyAgt3Acct: optional(account),
    CdtrAgt: optional(agent),
    CdtrAgtAcct: optional(account),
    Cdtr: required(creditor, ifNoCreditor),
    CdtrAcct: required(account, ifNoCreditor),
    UltmtCdtr: optional(debtor),
    InstrForCdtrAgt: repeated(),
    InstrForDbtrAgt: optional(text(140)),
    Purp: optional(version === 2 ? undefined : codeOrProprietary(4)),
    RgltryRptg: repeated(),
    Tax: optional(),
    RltdRmtInf: repeated(),
    RmtInf: optional(sequence({ Ustrd: repeated(text(140)), Strd: repeated() })),
    SplmtryData: from(8, repeated()),
  });

  const instruction = sequence({
    PmtInfId: version === 2 ? optional(text(35)) : required(text(35)),
    PmtMtd: required(isSepaVariant ? code('TRF') : code('CHK', 'TRF', 'TRA')),
    BtchBookg: from(3, optional(truth)),
    NbOfTxs: from(3, optional(count)),
    CtrlSum: from(3, optional(decimal)),
    PmtTpInf: optional(paymentType),
    ReqdExctnDt: required(version < 8 ? anyText : choice({ Dt: anyText, DtTm: anyText })),
    PoolgAdjstmntDt: optional(anyText),
    Dbtr: required(debtor),
    DbtrAcct: required(account),
    DbtrAgt: required(agent, 'usual'), // missing in the published example
    DbtrAgtAcct: optional(account),
    InstrForDbtrAgt: from(8, optional(text(140))),
    UltmtDbtr: optional(debtor),
    ChrgBr: optional(chargeBearer),
    ChrgsAcct: optional(account),
    ChrgsAcctAgt: optional(agent),
    CdtTrfTxInf: oneOrMore(transfer),
  });

  return sequence({
    GrpHdr: required(header),
    PmtInf: oneOrMore(instruction),
    SplmtryData: from(8, repeated()),
  });
}

const country = matching(/^[A-Z]{2}$/);
const currency = matching(/^[A-Z]{3}$/);
/** Wider than in version 03, whose first four characters are letters. */
const bic = matching(/^[A-Z0-9]{4}[A-Z]{2}[A-Z0-9]{2}(?:[A-Z0-9]{3})?$/);
const uuid4 = matching(/^[a-f0-9]{8}-[a-f0-9]{4}-4[a-f0-9]{3}-[89ab][a-f0-9]{3}-[a-f0-9]{12}$/);
const count = matching(/^[0-9]{1,15}$/);
const chargeBearer = code('DEBT', 'CRED', 'SHAR', 'SLEV');
const truth = collapsed('type', (value) => /^(?:true|false|0|1)$/.test(value));
const dateAndTime = collapsed('format', isXmlDateAndTime);
/** At most 18 digits, and at most 17 decimals. */
const decimal = collapsed(
  'pattern',
  (value) => decimalPattern.test(value) && value.replace(/\D/g, '').length <= 18,
);

/** xs:decimal has no exponent, and may begin or end with its dot. */
export const decimalPattern = /^[+-]?(?:\d{1,18}(?:\.\d{0,17})?|\.\d{1,17})$/;

const codeOrProprietary = (maxCode: number) => choice({ Cd: text(maxCode), Prtry: text(35) });

/** read-xml.ts checks the IBANs. */
const account4 = choice({
  IBAN: anyText,
  Othr: sequence({ Id: required(text(34)), SchmeNm: optional(), Issr: optional() }),
});
const account2 = choice({ IBAN: anyText, BBAN: anyText, UPIC: anyText, PrtryAcct: undefined });

const address6 = sequence({
  AdrTp: optional(),
  Dept: optional(text(70)),
  SubDept: optional(text(70)),
  StrtNm: optional(text(70)),
  BldgNb: optional(text(16)),
  PstCd: optional(text(16)),
  TwnNm: optional(text(35)),
  CtrySubDvsn: optional(text(35)),
  Ctry: optional(country),
  AdrLine: repeated(text(70)),
});
const address24 = sequence({
  AdrTp: optional(),
  Dept: optional(text(70)),
  SubDept: optional(text(70)),
  StrtNm: optional(text(70)),
  BldgNb: optional(text(16)),
  BldgNm: optional(text(35)),
  Flr: optional(text(70)),
  PstBx: optional(text(16)),
  Room: optional(text(70)),
  PstCd: optional(text(16)),
  TwnNm: optional(text(35)),
  TwnLctnNm: optional(text(35)),
  DstrctNm: optional(text(35)),
  CtrySubDvsn: optional(text(35)),
  Ctry: optional(country),
  AdrLine: repeated(text(70)),
});
