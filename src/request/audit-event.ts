/** What the audit log records: the actions of operators. */

export interface AuditEvent {
  /** Name of the operator. */
  readonly who: string;
  /** Such as `switch environment`. */
  readonly action: string;
  /** Such as `done`, `refused`, `forced`. */
  readonly outcome: string;
  readonly details: Readonly<Record<string, unknown>>;
}

export interface AuditRecorder {
  /** Never rejects: an event that the database does not accept is logged. */
  record(event: AuditEvent): Promise<void>;
}
