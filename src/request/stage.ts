/** How stages are strung into a line: each gets a value, may hand a richer one on, and sees the answer come back. */

import type { PisResponse } from './messages.ts';

/** Answers a request, or throws a GatewayError. */
export type Handler<In> = (request: In) => Promise<PisResponse>;

/** One stage: does its part before and after `next`, or answers by itself. */
export type Stage<In, Out = In> = (request: In, next: Handler<Out>) => Promise<PisResponse>;

/** A line under construction: the types refuse a stage whose input no earlier stage provides. */
export interface PipelineBuilder<In, Out> {
  use<Next>(stage: Stage<Out, Next>): PipelineBuilder<In, Next>;
  endWith(last: Handler<Out>): Handler<In>;
}

/** Starts a line; read it top-down, in the order in which a request passes. */
export const startPipeline = <In>(): PipelineBuilder<In, In> => extend((last) => last);

function extend<In, Out>(wrap: (last: Handler<Out>) => Handler<In>): PipelineBuilder<In, Out> {
  return {
    use: (stage) => extend((last) => wrap((request) => stage(request, last))),
    endWith: wrap,
  };
}
