/** What an operator has filled in, as the admin API takes it. */

/**
 * @param controls the fields of a form
 * @returns the values of those that are filled, by their names; times in UTC
 */
export const filledFields = (controls) =>
  Object.fromEntries(
    [...controls]
      .filter(({ name, value }) => name !== '' && value.trim() !== '')
      .map(({ name, type, value }) => [
        name,
        type === 'datetime-local' ? new Date(value).toISOString() : value.trim(),
      ]),
  );
