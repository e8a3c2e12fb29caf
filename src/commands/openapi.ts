/** `penstock openapi`: prints the OpenAPI description of both listeners. */

import { describeApi, openapiYaml } from '../admin/openapi/document.ts';
import { type CommandOutput, success } from './command-output.ts';

/** YAML, or JSON with `--json`. */
export const describeApis = (): CommandOutput => success([openapiYaml().trimEnd()], describeApi());
