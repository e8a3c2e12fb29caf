/** `penstock openapi`: what both doors understand, for generators and readers of OpenAPI. */

import { openapiYaml } from '../admin/openapi/document.ts';

/** The same that the operators' door serves at `/openapi.yaml`. */
export const showOpenapi = (): string => openapiYaml.trimEnd();
