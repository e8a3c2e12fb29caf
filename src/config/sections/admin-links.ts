/** admin.links: where the console links to for an environment or a request. */

import { z } from 'zod';

export const links = z
  .strictObject({
    grafana: template(['environment']).describe(
      'The address of a dashboard, such as `https://grafana.example.com/d/penstock?var-environment={environment}`.',
    ),
    traces: template(['xRequestId', 'environment']).describe(
      'The address that shows the traces of a request. They have the attribute `penstock.request_id`: `https://jaeger.example.com/search?service=penstock&tags={"penstock.request_id":"{xRequestId}"}`.',
    ),
  })
  .prefault({})
  .describe('Links of the console to other tools, with placeholders in braces that the console replaces.');

/** An address with placeholders such as `{environment}`. Other braces are text. */
function template(known: readonly string[]) {
  const expected = `expected an address with http: or https:, such as https://grafana.example.com/?name={${known[0]}}`;
  return z
    .string({ error: expected })
    .refine(isWebAddress, expected)
    .refine(hasNoCredentials, 'everybody who can sign in sees this address: remove the credentials')
    .superRefine((text, context) => {
      for (const [placeholder, name = ''] of text.matchAll(/\{(\w+)\}/g)) {
        if (known.includes(name)) continue;
        const names = known.map((one) => `{${one}}`).join(', ');
        context.addIssue({ code: 'custom', message: `unknown placeholder ${placeholder}; known: ${names}` });
      }
    })
    .nullable()
    .default(null);
}

/** The console links to nothing else: `javascript:` would run in the page. */
function isWebAddress(text: string): boolean {
  return /^https?:\/\//.test(text) && URL.canParse(text);
}

function hasNoCredentials(text: string): boolean {
  const url = URL.parse(text);
  return !url || `${url.username}${url.password}` === '';
}
