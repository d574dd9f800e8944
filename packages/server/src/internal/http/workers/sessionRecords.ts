/**
 * The records of shared sessions in the memory of one process, for the workers of a machine and for tests.
 */
import { KeyedCounter } from "@skein/runtime/KeyedCounter"
import type { SessionBounds, SessionChange, SessionRecord } from "../../../Fleet.ts"

interface Row {
  record: SessionRecord
  usedAt: number
  readonly idleTimeout: number
  readonly client: string
}

/** Applies a change to a record. */
const applied = (record: SessionRecord, change: SessionChange): SessionRecord => {
  const { isInitialized, listensAt, logLevel, subscribe, unsubscribe } = change
  const subscriptions = new Set(record.subscriptions)
  if (subscribe !== undefined) subscriptions.add(subscribe)
  if (unsubscribe !== undefined) subscriptions.delete(unsubscribe)
  return {
    ...record,
    subscriptions: [...subscriptions],
    ...(isInitialized === true ? { isInitialized } : {}),
    ...(logLevel === undefined ? {} : { logLevel }),
    ...(listensAt === undefined ? {} : { listensAt })
  }
}

/** The records, the least recently used first. All times are milliseconds of one clock. */
export class SessionRecords {
  readonly #rows = new Map<string, Row>()
  // The ids of the sessions of each client, the least recently used first.
  readonly #clients = new Map<string, Set<string>>()
  readonly #owned = new KeyedCounter()

  get size(): number {
    return this.#rows.size
  }

  /**
   * Adds a record, unless its principal has as many as allowed. At the bound of all sessions the client with the most
   * loses the one that it has not used for longest: its id is returned in `ended`.
   */
  create(
    record: SessionRecord,
    { idleTimeout, maxSessions, maxSessionsPerPrincipal }: SessionBounds,
    client: string,
    now: number
  ): { readonly isCreated: boolean; readonly ended?: string } {
    this.expire(now)
    const { id, principalId } = record
    if (this.#owned.of(principalId) >= maxSessionsPerPrincipal) return { isCreated: false }
    const ended = this.#rows.size >= maxSessions ? this.#oldestOfLargest() : undefined
    if (ended !== undefined) this.end(ended)
    this.#rows.set(id, { record, usedAt: now, idleTimeout, client })
    this.#clients.set(client, (this.#clients.get(client) ?? new Set()).add(id))
    this.#owned.add(principalId, 1)
    return ended === undefined ? { isCreated: true } : { isCreated: true, ended }
  }

  find(id: string, principalId: string | undefined, now: number): SessionRecord | undefined {
    this.expire(now)
    const record = this.#rows.get(id)?.record
    return record === undefined || record.principalId !== principalId ? undefined : record
  }

  change(id: string, change: SessionChange): void {
    const row = this.#rows.get(id)
    if (row !== undefined) row.record = applied(row.record, change)
  }

  end(id: string): void {
    const row = this.#rows.get(id)
    if (row === undefined) return
    this.#rows.delete(id)
    const own = this.#clients.get(row.client)!
    own.delete(id)
    if (own.size === 0) this.#clients.delete(row.client)
    this.#owned.add(row.record.principalId, -1)
  }

  /** A session was used. */
  touch(id: string, now: number): void {
    const row = this.#rows.get(id)
    if (row === undefined) return
    row.usedAt = now
    this.#rows.delete(id)
    this.#rows.set(id, row)
    const own = this.#clients.get(row.client)!
    own.delete(id)
    own.add(id)
  }

  /** Removes the records that were not used within their time. All have the same, so the oldest expire first. */
  expire(now: number): void {
    for (const [id, { idleTimeout, usedAt }] of this.#rows) {
      if (now - usedAt < idleTimeout) return
      this.end(id)
    }
  }

  #oldestOfLargest(): string | undefined {
    let largest: ReadonlySet<string> = new Set()
    for (const own of this.#clients.values()) if (own.size > largest.size) largest = own
    for (const id of largest) return id
    return undefined
  }
}
