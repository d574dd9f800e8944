/**
 * The load of an endpoint, and the shares that its clients have in it.
 *
 * The bounds of an endpoint apply to all clients together. So that no client can lock out the others, each request,
 * stream, session, unread body and unsent answer is a claim of its client, and at a bound the client with the largest
 * share gives up a claim for a client with a smaller one.
 */
import { largestBeside } from "../../base/client.ts"
import type { Store } from "./eventStore.ts"

/** The claims whose number is bounded. */
export type Counted = "requests" | "streams" | "sessions"

/** A part of the load that belongs to one client. */
export interface Claim {
  /** The bound that it counts towards, besides that of the retained bytes. */
  readonly kind: Counted | undefined
  /** The share that it is counted in, while it is counted; set by the load. */
  share: Share | undefined
  /** How many bytes it retains in memory; set by the load. Text is counted by its characters. */
  bytes: number
  /** Whether nothing happens until its client sends or reads: it can be given up for any other claim. */
  readonly isWaiting: boolean
  /** Of several claims, the one with the lowest rank is given up first; of equal ones, the oldest. */
  readonly rank?: number | undefined
  /** Gives it up, and removes it from the load. */
  readonly evict: () => void
}

/** A claim without state of its own. */
export class SimpleClaim implements Claim {
  readonly kind: Counted | undefined
  readonly evict: () => void
  readonly #isWaiting: () => boolean
  share: Share | undefined = undefined
  bytes = 0

  constructor(kind: Counted | undefined, isWaiting: () => boolean, evict: () => void) {
    this.kind = kind
    this.#isWaiting = isWaiting
    this.evict = evict
  }

  get isWaiting(): boolean {
    return this.#isWaiting()
  }
}

/** The claims of one client. */
export class Share {
  readonly client: string
  readonly claims = new Set<Claim>()
  requests = 0
  streams = 0
  sessions = 0
  bytes = 0

  constructor(client: string) {
    this.client = client
  }
}

// How many times smaller than one of its claims a message must be to take its place, for a client with no other claims
// to give up.
const smallerBy = 16

const byBytes = (one: { readonly bytes: number }, other: { readonly bytes: number }): number => other.bytes - one.bytes

/** Counts what an endpoint has in use for its clients. */
export class Load {
  /** Requests that have suspended, without `subscriptions/listen`. */
  requests = 0
  /** Streams without an end of their own: `subscriptions/listen` and GET. */
  streams = 0
  /** Sessions, except those of single requests. */
  sessions = 0
  /** The most bytes that are retained. */
  readonly maxBytes: number
  readonly #events: Pick<Store, "size" | "trim">
  readonly #shares = new Map<string, Share>()
  #bytes = 0
  #isRelieving = false

  /** `events` are the stored events, which are given up before anything else. */
  constructor(maxBytes: number, events: Pick<Store, "size" | "trim">) {
    this.maxBytes = maxBytes
    this.#events = events
  }

  /** How many bytes are retained for clients. */
  get bytes(): number {
    return this.#bytes + (this.#events.size ?? 0)
  }

  /** Adds a claim of a client. */
  add(claim: Claim, client: string, bytes: number): void {
    let share = this.#shares.get(client)
    if (share === undefined) this.#shares.set(client, share = new Share(client))
    share.claims.add(claim)
    claim.share = share
    const { kind } = claim
    if (kind !== undefined) {
      share[kind]++
      this[kind]++
    }
    this.charge(claim, bytes)
  }

  /**
   * Adds bytes to a claim, or removes them. Beyond the bound, claims are given up, and this one if that does not
   * suffice.
   */
  charge(claim: Claim, bytes: number): void {
    if (claim.share === undefined) return
    claim.bytes += bytes
    claim.share.bytes += bytes
    this.#bytes += bytes
    if (bytes <= 0 || this.#isRelieving || this.hasRoom(0)) return
    this.relieve(claim.share.client)
    // Nothing else can be given up: the claim that has grown is.
    if (!this.hasRoom(0) && claim.share !== undefined) claim.evict()
  }

  /** Removes a claim, if it is counted. */
  remove(claim: Claim): void {
    const { bytes, kind, share } = claim
    if (share === undefined) return
    claim.share = undefined
    claim.bytes = 0
    share.claims.delete(claim)
    share.bytes -= bytes
    this.#bytes -= bytes
    if (kind !== undefined) {
      share[kind]--
      this[kind]--
    }
    if (share.claims.size === 0) this.#shares.delete(share.client)
  }

  /** Whether this many bytes more can be retained, for any client. */
  hasRoom(bytes: number): boolean {
    return this.bytes + bytes <= this.maxBytes
  }

  /** Gives up claims if more bytes are retained than allowed. `client` is the one whose claim has grown. */
  relieve(client: string): void {
    if (this.bytes > this.maxBytes) this.makeRoom(client, 0)
  }

  /**
   * Makes room for bytes of a client: gives up stored events, then waiting claims of clients with larger shares, or of
   * its own, then other claims of clients whose share is at least twice as large. A small message of a client with the
   * largest share takes the place of its largest claims. Returns whether there is room.
   */
  makeRoom(client: string, bytes: number): boolean {
    if (this.#isRelieving) return this.hasRoom(bytes)
    this.#isRelieving = true
    try {
      // More than necessary, so that this is rarely repeated.
      const ample = this.maxBytes - (this.maxBytes >> 3) - bytes
      if (!this.hasRoom(bytes)) this.#events.trim?.(Math.max(0, ample - this.#bytes))
      if (this.hasRoom(bytes)) return true
      const isAmple = () => this.bytes <= ample
      const hasRoom = () => this.hasRoom(bytes)
      // Giving up a smaller claim would free too little.
      const minBytes = Math.min(1_024, this.maxBytes >> 10)
      const own = (this.#shares.get(client)?.bytes ?? 0) + bytes
      for (const share of Array.from(this.#shares.values()).sort(byBytes)) {
        if (share.client !== client && share.bytes < own) break
        this.#giveUp(share, (claim) => claim.isWaiting && claim.bytes >= minBytes, isAmple)
        if (isAmple()) return true
        if (share.client !== client) {
          this.#giveUp(share, (claim) => claim.bytes >= minBytes, () => hasRoom() || share.bytes < 2 * own)
        }
        if (hasRoom()) return true
      }
      const ownShare = bytes === 0 ? undefined : this.#shares.get(client)
      if (ownShare !== undefined) {
        this.#giveUp(ownShare, (claim) => claim.bytes >= Math.max(minBytes, smallerBy * bytes), hasRoom)
      }
      return hasRoom()
    } finally {
      this.#isRelieving = false
    }
  }

  /** Gives up claims of a client, the largest first, until there is enough room. */
  #giveUp(share: Share, isPossible: (claim: Claim) => boolean, isEnough: () => boolean): void {
    for (const claim of Array.from(share.claims).filter(isPossible).sort(byBytes)) {
      if (isEnough()) return
      if (claim.share === share) claim.evict()
    }
  }

  /**
   * Makes room for one more request, stream or session of a client at the bound of their number. A client with at least
   * twice as many gives up one; otherwise the client with the most gives up one that waits for it. Returns whether one
   * was given up.
   */
  makeRoomFor(kind: Counted, client: string): boolean {
    const own = this.#shares.get(client)?.[kind] ?? 0
    const counts = Array.from(this.#shares.values(), (share) => [share.client, share[kind]] as const)
    const larger = largestBeside(counts, own)
    const most = larger ?? counts.reduce((one, other) => other[1] > one[1] ? other : one, ["", 0] as const)[0]
    let found: Claim | undefined
    for (const claim of this.#shares.get(most)?.claims ?? []) {
      if (claim.kind !== kind || (larger === undefined && !claim.isWaiting)) continue
      if (found === undefined || (claim.rank ?? 0) < (found.rank ?? 0)) found = claim
    }
    found?.evict()
    return found !== undefined
  }
}
