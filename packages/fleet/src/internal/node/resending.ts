/**
 * The messages that a node sends again to another one whose connection to the database was lost, and the numbers by which
 * that one notices what it has received already.
 */
import type { Outgoing } from "./backend.ts"

// Messages that were sent longer ago are not sent again, nor those beyond the characters.
export const historyMillis = 60_000
const maxHistoryChars = 4 * 1024 * 1024

// How many numbers of a sender are remembered. The messages on two channels may arrive in another order.
const maxNumbers = 2_000
const disorder = 100

interface Sent extends Outgoing {
  readonly number: number
  readonly at: number
}

/** The messages that this node has sent, the oldest first. */
export class SentMessages {
  readonly #sent: Array<Sent> = []
  #chars = 0

  add(message: Outgoing, number: number, at: number): void {
    this.#sent.push({ ...message, number, at })
    this.#chars += message.text.length
    while (this.#chars > maxHistoryChars || this.#sent[0]!.at < at - historyMillis) {
      this.#chars -= this.#sent.shift()!.text.length
      if (this.#sent.length === 0) break
    }
  }

  /** The messages of the last minute to a node, after one that it has received. */
  after(number: number, to: number, now: number): ReadonlyArray<string> {
    return this.#sent
      .filter((sent) =>
        sent.number > number && (sent.to === undefined || sent.to === to) && sent.at >= now - historyMillis
      )
      .map(({ text }) => text)
  }
}

interface Sender {
  readonly numbers: Set<number>
  floor: number
  highest: number
  /** Since when its lease has ended. */
  goneAt: number | undefined
}

/** The numbers of the messages that have arrived at this node. */
export class Arrivals {
  readonly #senders = new Map<number, Sender>()

  /** A message arrives. Returns whether it has not arrived before. */
  add(from: number, number: number): boolean {
    const sender = this.#senders.get(from) ?? { numbers: new Set(), floor: 0, highest: 0, goneAt: undefined }
    this.#senders.set(from, sender)
    if (number <= sender.floor || sender.numbers.has(number)) return false
    sender.numbers.add(number)
    sender.highest = Math.max(sender.highest, number)
    if (sender.numbers.size > maxNumbers) {
      const [oldest] = sender.numbers
      sender.numbers.delete(oldest!)
      sender.floor = Math.max(sender.floor, oldest!)
    }
    return true
  }

  /** The numbers after which messages may be missing, by sender. */
  highest(): { readonly [from: number]: number } {
    return Object.fromEntries(
      Array.from(this.#senders, ([from, { highest }]) => [from, Math.max(0, highest - disorder)])
    )
  }

  /**
   * Forgets the senders that have not been in the fleet for twice as long as they send messages again. While the database is
   * down, all leases end, and each node comes back with its number.
   */
  retain(nodes: ReadonlySet<number>, now: number): void {
    for (const [from, sender] of this.#senders) {
      sender.goneAt = nodes.has(from) ? undefined : sender.goneAt ?? now
      if (now - (sender.goneAt ?? now) > 2 * historyMillis) this.#senders.delete(from)
    }
  }
}
