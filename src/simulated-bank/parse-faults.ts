/** Reads faults from JSON, strictly: a misspelt fault that never strikes proves nothing. */
import { type OperationName, operations } from '../pis/operations.ts';
import { type Fault, type FaultScope, faultRows } from './faults.ts';

const moments = ['before-reading', 'before-effect', 'after-effect'];
const operationNames: readonly string[] = operations.map(({ name }) => name);

/** One fault or a list of them, each an object with `name`, its parameters, `strikes`, `times`, `operation`. */
export function parseFaults(
  value: unknown,
): readonly { readonly fault: Fault; readonly scope: FaultScope }[] {
  return [value].flat().map((one) => {
    if (typeof one !== 'object' || one === null) throw new TypeError('a fault is an object with a name');
    const { name, times, operation, ...parameters }: Record<string, unknown> = { ...one };
    if (!isFaultName(name))
      throw new TypeError(`${name} is no fault; there are ${Object.keys(faultRows).join(', ')}`);
    checkParameters(faultRows[name].defaults, parameters);
    const scope = { ...timesIn(times), ...operationIn(operation) };
    return { fault: { name, ...parameters } as Fault, scope }; // checked against the defaults of its row
  });
}

const isFaultName = (name: unknown): name is Fault['name'] =>
  typeof name === 'string' && Object.hasOwn(faultRows, name);

function checkParameters(defaults: object, { strikes, ...given }: Readonly<Record<string, unknown>>): void {
  if (strikes !== undefined && !moments.some((moment) => moment === strikes)) {
    throw new TypeError(`strikes must be one of ${moments.join(', ')}`);
  }
  const known = new Map(Object.entries(defaults));
  for (const [parameter, value] of Object.entries(given)) {
    if (!known.has(parameter)) {
      throw new TypeError(
        `${parameter} is no parameter; there are ${['strikes', ...known.keys()].join(', ')}`,
      );
    }
    const wanted = known.get(parameter);
    if (typeof value !== typeof wanted || Array.isArray(value) !== Array.isArray(wanted)) {
      throw new TypeError(`${parameter} must look like ${JSON.stringify(wanted)}`);
    }
  }
}

function timesIn(times: unknown): FaultScope {
  if (times === undefined) return {};
  if (typeof times === 'number' && Number.isInteger(times) && times > 0) return { times };
  throw new TypeError('times must be a whole number from 1');
}

function operationIn(operation: unknown): FaultScope {
  if (operation === undefined) return {};
  const names: unknown[] = [operation].flat();
  if (names.every(isOperationName)) return { operation: names };
  throw new TypeError(`operation must be one or a list of ${operationNames.join(', ')}`);
}

const isOperationName = (name: unknown): name is OperationName =>
  typeof name === 'string' && operationNames.includes(name);
