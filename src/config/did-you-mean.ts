/** Finds the known name that is most similar to a misspelt name. */

/**
 * The most similar known name, or else the only one that begins with the given name.
 *
 * @returns `undefined` if no name begins so, and each differs by more than a third of the given letters (at least 1)
 */
export function closestName(given: string, known: readonly string[]): string | undefined {
  const text = given.slice(0, 100).toLowerCase();
  const maxDistance = Math.max(1, Math.floor(text.length / 3));
  const [closest] = known
    .map((name) => ({ name, distance: editDistance(text, name.toLowerCase()) }))
    .filter(({ distance }) => distance <= maxDistance)
    .sort((one, other) => one.distance - other.distance);
  return closest?.name ?? completion(text, known);
}

/**
 * A known name whose words all occur in the given name (`maxBody` for `client_max_body_size`), or else the only one that
 * contains all words of the given name (`standardVersion` for `version`).
 */
export function nameOfSameWords(given: string, known: readonly string[]): string | undefined {
  const words = wordsOf(given);
  const contained = known
    .filter((name) => wordsOf(name).length > 1 && includesAll(words, wordsOf(name)))
    .toSorted((one, other) => wordsOf(other).length - wordsOf(one).length);
  const [container, ...others] = known.filter(
    (name) => words.length > 0 && includesAll(wordsOf(name), words),
  );
  return contained[0] ?? (others.length === 0 ? container : undefined);
}

const includesAll = (words: readonly string[], wanted: readonly string[]) =>
  wanted.every((word) => words.includes(word));

/** The words of a name in camel case, or separated by other characters; in lower case. */
export const wordsOf = (name: string): readonly string[] =>
  name
    .slice(0, 100)
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== '');

/** Shorter beginnings fit by chance. */
const minCompletedLetters = 4;

function completion(text: string, known: readonly string[]): string | undefined {
  if (text.length < minCompletedLetters) return undefined;
  const [completed, ...others] = known.filter((name) => name.toLowerCase().startsWith(text));
  return others.length === 0 ? completed : undefined;
}

/** Optimal string alignment: the number of insertions, deletions, substitutions and swaps of adjacent letters. */
function editDistance(from: string, to: string): number {
  const rows: number[][] = [Array.from({ length: to.length + 1 }, (_, column) => column)];
  const at = (row: number, column: number) => rows[row]?.[column] ?? Infinity;

  for (let row = 1; row <= from.length; row++) {
    rows.push([row]);
    for (let column = 1; column <= to.length; column++) {
      const cost = from[row - 1] === to[column - 1] ? 0 : 1;
      const swapped = from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1];
      const steps = [at(row - 1, column) + 1, at(row, column - 1) + 1, at(row - 1, column - 1) + cost];
      rows[row]?.push(Math.min(...steps, swapped ? at(row - 2, column - 2) + 1 : Infinity));
    }
  }
  return at(from.length, to.length);
}
