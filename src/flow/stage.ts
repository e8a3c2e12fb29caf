/** How stages are strung into a line: each gets a value, may hand a richer one on, and sees the answer come back. */

import type { PisResponse } from './messages.ts';

/** Answers a request, or throws a GatewayError. */
export type Handler<In> = (request: In) => Promise<PisResponse>;

/** One stage: does its part before and after `next`, or answers by itself. */
export type Stage<In, Out = In> = (request: In, next: Handler<Out>) => Promise<PisResponse>;

/** A line under construction: the types refuse a stage whose input no earlier stage provides. */
export interface Line<In, Out> {
  through<Next>(stage: Stage<Out, Next>): Line<In, Next>;
  arrive(last: Handler<Out>): Handler<In>;
}

/** Starts a line; read it top-down, in the order in which a request passes. */
export const enter = <In>(): Line<In, In> => grow((last) => last);

function grow<In, Out>(wrap: (last: Handler<Out>) => Handler<In>): Line<In, Out> {
  return {
    through: (stage) => grow((last) => wrap((request) => stage(request, last))),
    arrive: wrap,
  };
}
