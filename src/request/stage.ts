/** Composes stages to a pipeline. Each stage passes a request on to the next one, and sees the response or the error. */

import type { PisResponse } from './messages.ts';

/** Answers a request, or throws a GatewayError. */
export type Handler<In> = (request: In) => Promise<PisResponse>;

/** Works before and after `next`, or answers the request itself. */
export type Stage<In, Out = In> = (request: In, next: Handler<Out>) => Promise<PisResponse>;

/** The types refuse a stage whose input is not provided by the stages before it. */
export interface PipelineBuilder<In, Out> {
  use<Next>(stage: Stage<Out, Next>): PipelineBuilder<In, Next>;
  endWith(last: Handler<Out>): Handler<In>;
}

/** Stages are added in the order in which a request passes them. */
export const startPipeline = <In>(): PipelineBuilder<In, In> => extend((last) => last);

function extend<In, Out>(wrap: (last: Handler<Out>) => Handler<In>): PipelineBuilder<In, Out> {
  return {
    use: (stage) => extend((last) => wrap((request) => stage(request, last))),
    endWith: wrap,
  };
}
