/** Dates in header fields (RFC 9110 section 5.6.7). */

/**
 * Parses a date in one of the three formats, in any letter case (RFC 9111 section 4.2), with GMT as the only time zone. The
 * weekday need not fit the date.
 *
 * @param nowMs selects the century of a two-digit year: milliseconds since 1970
 * @returns milliseconds since 1970, or `undefined` for any other text and for dates that do not exist
 */
export function parseHttpDate(text: string, nowMs: number): number | undefined {
  for (const format of formats) {
    const { month = '', day, year = '', hour, minute, second } = format.exec(text)?.groups ?? {};
    if (month === '') continue;
    const monthIndex = months.indexOf(month.toLowerCase());
    const at = (fullYear: number) =>
      dateAt(fullYear, monthIndex, Number(day), Number(hour), Number(minute), Number(second));
    return year.length === 4 ? at(Number(year)) : inNearestCentury(Number(year), at, nowMs);
  }
  return undefined;
}

const months = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];

const shortDay = 'Mon|Tue|Wed|Thu|Fri|Sat|Sun';
const longDay = 'Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday';
const month = `(?<month>${months.join('|')})`;
const time = '(?<hour>[01]\\d|2[0-3]):(?<minute>[0-5]\\d):(?<second>[0-5]\\d|60)'; // 60: a leap second

/** IMF-fixdate, the format of RFC 850, and that of `asctime()` in C. */
const formats: readonly RegExp[] = [
  `(?:${shortDay}), (?<day>\\d\\d) ${month} (?<year>\\d{4}) ${time} GMT`,
  `(?:${longDay}), (?<day>\\d\\d)-${month}-(?<year>\\d\\d) ${time} GMT`,
  `(?:${shortDay}) ${month} (?<day>\\d\\d| \\d) ${time} (?<year>\\d{4})`,
].map((pattern) => new RegExp(`^(?:${pattern})$`, 'i'));

function dateAt(
  year: number,
  monthIndex: number,
  day: number,
  hour: number,
  minute: number,
  second: number,
): number | undefined {
  const date = new Date(0);
  date.setUTCFullYear(year, monthIndex, day); // Date.UTC takes the years 0 to 99 for 1900 to 1999
  const exists = date.getUTCMonth() === monthIndex && date.getUTCDate() === day;
  return exists ? date.setUTCHours(hour, minute, second) : undefined;
}

/** A date that appears to be more than 50 years in the future is in the century before. */
function inNearestCentury(
  shortYear: number,
  at: (fullYear: number) => number | undefined,
  nowMs: number,
): number | undefined {
  const now = new Date(nowMs);
  const year = Math.floor(now.getUTCFullYear() / 100) * 100 + shortYear;
  const in50YearsMs = now.setUTCFullYear(now.getUTCFullYear() + 50);
  const dateMs = at(year);
  return dateMs !== undefined && dateMs > in50YearsMs ? at(year - 100) : dateMs;
}
