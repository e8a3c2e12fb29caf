/**
 * Embedded SCA: the TPP sends the payer's password, the choice of a method, and the TAN, in this order, each in a PUT on the
 * authorisation (the password also when it starts the authorisation). The bank's own pages and app do the same in other approaches.
 */
import { BankError } from './bank-error.ts';
import type { OperationContext } from './operation-context.ts';
import {
  type EmbeddedSteps,
  isBlocked,
  type Payment,
  type PaymentAuthorisation,
} from './payment-lifecycle.ts';

/** What the payer of every payment knows. */
export const payerCredentials = { password: 'start12', tan: '123456' } as const;

const scaMethods = [
  { authenticationMethodId: '901', authenticationType: 'SMS_OTP', name: 'SMS to ***6789' },
  { authenticationMethodId: '904', authenticationType: 'PUSH_OTP', name: 'Banking app' },
];

/** The data of an answer to a step, without its links and status. */
export type StepAnswer = Readonly<Record<string, unknown>>;

/** The data of a step: the body of a PUT on the authorisation, or of its start. */
export type StepData = {
  readonly psuData?: unknown;
  readonly authenticationMethodId?: unknown;
  readonly scaAuthenticationData?: unknown;
};

/** Whether a body holds data of a step. */
export const hasStep = (data: StepData) => stepIn(data) !== undefined;

/**
 * Executes one step.
 *
 * @returns what the TPP gets besides status and links
 * @throws BankError 401 PSU_CREDENTIALS_INVALID for a wrong password or TAN, and for a blocked authorisation; 409 STATUS_INVALID for
 *   a step at another time; 400 for other data
 */
export function takeStep(
  { payments, clock }: Pick<OperationContext, 'payments' | 'clock'>,
  payment: Payment,
  authorisation: PaymentAuthorisation,
  data: StepData,
): StepAnswer {
  const step = stepIn(data);
  if (!step) {
    const text = 'One of psuData.password, authenticationMethodId and scaAuthenticationData is required';
    throw new BankError(400, 'FORMAT_ERROR', text);
  }
  const { embedded } = authorisation;
  if (!embedded) throw new BankError(409, 'STATUS_INVALID', 'The payer authorises this payment at the bank');
  if (isBlocked(authorisation)) throw wrong('The authorisation is blocked after three wrong attempts');
  const status = payments.scaStatusOf(payment, authorisation);
  if (embedded.next !== step.name || status === 'failed') {
    const text = `The authorisation is ${status}, and takes no ${step.name} now`;
    throw new BankError(409, 'STATUS_INVALID', text);
  }

  const change = (after: EmbeddedSteps, credentialChecks: number) =>
    payments.continueAuthorisation({ ...payment, credentialChecks }, authorisation, after);
  const check = (isRight: boolean, after: EmbeddedSteps) => {
    const wrongAttempts = embedded.wrongAttempts + (isRight ? 0 : 1);
    change(isRight ? after : { ...embedded, wrongAttempts }, payment.credentialChecks + 1);
    if (!isRight) throw wrong(`The ${step.name} is wrong`);
  };

  switch (step.name) {
    case 'password':
      check(step.value === payerCredentials.password, { ...embedded, next: 'method' });
      return { scaMethods };
    case 'method': {
      const chosenScaMethod = scaMethods.find((method) => method.authenticationMethodId === step.value);
      if (!chosenScaMethod)
        throw new BankError(400, 'SCA_METHOD_UNKNOWN', 'The authentication method is unknown');
      change({ ...embedded, next: 'tan' }, payment.credentialChecks);
      return { chosenScaMethod, challengeData: { otpMaxLength: 6, otpFormat: 'integer' } };
    }
    case 'tan':
      check(step.value === payerCredentials.tan, { ...embedded, next: 'nothing', finishedAt: clock.now() });
      return {};
  }
}

const wrong = (text: string) => new BankError(401, 'PSU_CREDENTIALS_INVALID', text);

/** The name of the link for the next step. */
export const linkOfStep = {
  password: 'updatePsuAuthentication',
  method: 'selectAuthenticationMethod',
  tan: 'authoriseTransaction',
  nothing: undefined,
} as const;

function stepIn({ psuData, authenticationMethodId, scaAuthenticationData }: StepData) {
  if (typeof psuData === 'object' && psuData && 'password' in psuData)
    return { name: 'password', value: psuData.password } as const;
  if (authenticationMethodId !== undefined) return { name: 'method', value: authenticationMethodId } as const;
  if (scaAuthenticationData !== undefined) return { name: 'tan', value: scaAuthenticationData } as const;
  return undefined;
}
