/** Everything that one evaluation finds. */

import { type BankFacts, findAtBank } from './bank-findings.ts';
import type { Finding } from './finding.ts';
import { findInitiations, type InitiationFacts } from './initiation-findings.ts';
import { type FleetFacts, findInFleet, findOnInstance, type OwnFacts } from './instance-findings.ts';
import { findOfPayments, type PaymentFacts } from './payment-findings.ts';

/** What the alerts are found in, at one moment. */
export interface AlertFacts extends InitiationFacts, PaymentFacts, BankFacts, OwnFacts, FleetFacts {}

export const findAlerts = (facts: AlertFacts): readonly Finding[] => [
  ...findInitiations(facts),
  ...findOfPayments(facts),
  ...findAtBank(facts),
  ...findOnInstance(facts),
  ...findInFleet(facts),
];
