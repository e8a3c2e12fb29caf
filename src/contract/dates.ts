/** Dates of JSON bodies (ISO 8601 as in RFC 3339 section 5.6) and of XML (XML Schema part 2), and the current day at a bank. */

const datePattern = /^(\d{4})-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$/;
const xmlDatePattern = /^\d{4}-\d{2}-\d{2}(?:Z|[+-]\d{2}:\d{2})?$/;
const xmlTimePattern = /^T(?:(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?|24:00:00)(?:Z|[+-]\d{2}:\d{2})?$/;
const timePattern = /^([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d{1,9})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$/i;

/** Whether the text is a day of the calendar, such as `2026-02-28`. */
export function isDate(text: string): boolean {
  const [, year, month, day] = datePattern.exec(text) ?? [];
  if (year === undefined) return false;
  return Number(day) <= 28 || Number(day) <= daysIn(Number(year), Number(month));
}

/** Whether the text is a date and a time with its zone, such as `2026-02-28T10:00:00Z`. */
export const isDateAndTime = (text: string): boolean =>
  text.length <= 40 &&
  text[10]?.toUpperCase() === 'T' &&
  isDate(text.slice(0, 10)) &&
  timePattern.test(text.slice(11));

/** xs:date, such as `2026-02-28` or `2026-02-28+01:00`. */
export const isXmlDate = (text: string): boolean => xmlDatePattern.test(text) && isDate(text.slice(0, 10));

/** xs:dateTime, such as `2026-02-28T10:00:00`: the zone is optional, unlike in JSON. */
export const isXmlDateAndTime = (text: string): boolean =>
  text.length <= 60 && isDate(text.slice(0, 10)) && xmlTimePattern.test(text.slice(10));

/**
 * The calendar day at a time, as `YYYY-MM-DD`.
 *
 * @param timeZone of the bank; if it is not known, the day is that of UTC-12, so that an earlier date is past everywhere
 */
export function dayAt(timeMs: number, timeZone: string | undefined): string {
  if (timeZone === undefined) return new Date(timeMs - 12 * hourMs).toISOString().slice(0, 10);
  return formatFor(timeZone).format(timeMs);
}

export function isTimeZone(name: string): boolean {
  try {
    formatFor(name);
    return true;
  } catch (thrown) {
    if (thrown instanceof RangeError) return false;
    throw thrown;
  }
}

const hourMs = 3_600_000;
const formats = new Map<string, Intl.DateTimeFormat>();

function formatFor(timeZone: string): Intl.DateTimeFormat {
  const known = formats.get(timeZone);
  if (known) return known;
  // The Swedish format is that of ISO 8601.
  const created = new Intl.DateTimeFormat('sv-SE', {
    timeZone,
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
  });
  formats.set(timeZone, created);
  return created;
}

const daysIn = (year: number, month: number) => new Date(Date.UTC(year, month, 0)).getUTCDate();
