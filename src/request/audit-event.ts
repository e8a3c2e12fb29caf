/** What operators did, as the audit log records it: every part that takes orders tells it so. */

/** What is to be recorded. */
export interface AuditEvent {
  readonly who: string;
  /** Such as `switch environment`. */
  readonly action: string;
  /** Such as `done`, `refused`, `forced`. */
  readonly outcome: string;
  readonly details: Readonly<Record<string, unknown>>;
}

export interface AuditRecorder {
  /** Records it, and says in the log if the state does not take it. Never fails. */
  record(event: AuditEvent): Promise<void>;
}
