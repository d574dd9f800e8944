/**
 * The published revisions of the Model Context Protocol, and the two eras that they fall into.
 */

/** A published revision of the protocol, named by its date. */
export type Revision = "2024-11-05" | "2025-03-26" | "2025-06-18" | "2025-11-25" | "2026-07-28"

/**
 * How a revision converses. In the `session` era an `initialize` handshake opens a connection on which both sides may
 * send requests. In the `request` era each request carries its own metadata and stands alone.
 */
export type Era = "session" | "request"

/** Every revision, oldest first. */
export const all: ReadonlyArray<Revision> = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]

/** The newest revision: `2026-07-28`. */
export const latest: Revision = "2026-07-28"

/** The newest revision that is opened with an `initialize` handshake: `2025-11-25`. */
export const latestSession: Revision = "2025-11-25"

/** The revisions that are opened with an `initialize` handshake, oldest first. */
export const sessionEra: ReadonlyArray<Revision> = all.slice(0, 4)

/** The revisions in which each request stands alone, oldest first. */
export const requestEra: ReadonlyArray<Revision> = all.slice(4)

/** The position of a revision in {@link all}: 0 is the oldest. */
export const indexOf = (revision: Revision): number => all.indexOf(revision)

/** Whether the value names a published revision. */
export const is = (value: unknown): value is Revision => all.includes(value as Revision)

/** The era of a revision. */
export const era = (revision: Revision): Era => requestEra.includes(revision) ? "request" : "session"

/** Whether `revision` is `since` or newer, and older than `until`; each where one is given. */
export const within = (revision: Revision, since: Revision | undefined, until?: Revision | undefined): boolean =>
  (since === undefined || revision >= since) && (until === undefined || revision < until)
