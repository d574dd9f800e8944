/**
 * The published revisions of the Model Context Protocol and their two lifecycles.
 */

/** A published revision of the protocol, named by its date. */
export type Revision = "2024-11-05" | "2025-03-26" | "2025-06-18" | "2025-11-25" | "2026-07-28"

/**
 * The lifecycle of a revision. In the `session` lifecycle an `initialize` handshake opens a session in which both sides
 * send requests. In the `stateless` lifecycle each request of the client carries its own metadata and does not depend
 * on a session.
 */
export type Era = "session" | "stateless"

/** Every revision, oldest first. */
export const all: ReadonlyArray<Revision> = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]

/** The newest revision: `2026-07-28`. */
export const latest: Revision = "2026-07-28"

/** The newest revision with sessions: `2025-11-25`. */
export const latestSession: Revision = "2025-11-25"

/** The revisions with sessions, oldest first. */
export const sessionBased: ReadonlyArray<Revision> = all.slice(0, 4)

/** The stateless revisions, oldest first. */
export const stateless: ReadonlyArray<Revision> = all.slice(4)

/** Returns the position of a revision in {@link all}. The oldest is 0. */
export const indexOf = (revision: Revision): number => all.indexOf(revision)

/** Whether the value is a published revision. */
export const is = (value: unknown): value is Revision => all.includes(value as Revision)

/**
 * Reads the version that a peer names: a published revision, or `undefined`. `2024-10-07`, the draft before the first
 * publication, is read as the oldest revision: the official SDKs support it, and its messages are the same.
 */
export const read = (version: unknown): Revision | undefined =>
  version === "2024-10-07" ? all[0] : is(version) ? version : undefined

/** Returns the lifecycle of a revision. */
export const era = (revision: Revision): Era => stateless.includes(revision) ? "stateless" : "session"

/**
 * Whether a revision is in a range: `since` or newer, and older than `until`. A bound of `undefined` is not checked.
 *
 * @example
 * Revision.within("2025-06-18", "2025-03-26", "2025-11-25") // true
 */
export const within = (revision: Revision, since: Revision | undefined, until?: Revision | undefined): boolean =>
  (since === undefined || revision >= since) && (until === undefined || revision < until)
