/** The pages of the operations handbook that alerts link to. */

const handbook = 'https://github.com/penstock-gateway/penstock/blob/main/docs/operations';

export const guides = {
  certificates: `${handbook}/certificates.md#certificate-expiry`,
  circuits: `${handbook}/circuits.md`,
  bankChange: `${handbook}/contract.md#the-bank-has-changed`,
  contract: `${handbook}/contract.md#read-the-report`,
  console: `${handbook}/console.md`,
  errors: `${handbook}/why-was-my-call-refused.md`,
  inDoubt: `${handbook}/in-doubt.md`,
  instances: `${handbook}/fleet.md`,
  readiness: `${handbook}/degradation.md`,
  shaping: `${handbook}/shaping.md`,
  deadLetters: `${handbook}/webhooks.md#see-and-resend`,
  webhooks: `${handbook}/webhooks.md#allow-a-client`,
};
