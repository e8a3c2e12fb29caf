/** docs/openapi.yaml: both doors, from the tables of operations and errors, and the operators' routes. */

import { openapiYaml } from '../../src/admin/openapi/document.ts';

/** The description, with a word on where it comes from. */
export const openapiPage = (): string =>
  `# Made from src/pis/operations.ts, src/request/errors.ts and src/admin/openapi by \`npm run docs\`; change it there.\n${openapiYaml}`;
