/** The production environment, where real money moves: some changes there must be confirmed by its name (ADR 103). */

/** Environments with other names are for tests. */
const productionName = 'production';

export const isProduction = (environment: string): boolean => environment === productionName;

/** Whether a change that needs a confirmation in production may be made. @param confirm the name that the operator typed */
export const isConfirmed = (environment: string, confirm: string | undefined): boolean =>
  !isProduction(environment) || confirm === environment;
