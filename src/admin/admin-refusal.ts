/** The refusal of an admin request. */

/** A refusal that a handler throws: its status and JSON body. */
export class AdminRefusal extends Error {
  readonly status: number;
  readonly body: object;

  constructor(status: number, error: string, more: object = {}) {
    super(error);
    this.status = status;
    this.body = { error, ...more };
  }
}
