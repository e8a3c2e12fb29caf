/** The pages of the operations handbook that the console links to. */

const handbook = 'https://github.com/penstock-gateway/penstock/blob/main/docs/operations';

export const guides = {
  contract: `${handbook}/contract.md#read-the-report`,
  console: `${handbook}/console.md`,
  webhooks: `${handbook}/webhooks.md#allow-a-client`,
};
