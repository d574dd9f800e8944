/** How often clients may do what fills the store of a proxy. */
import { networkOf, type PageRequest } from "@skein/server/Http"

/** How long a client that was refused is asked to wait, in seconds: the window has ended by then. */
export const retryAfterSeconds = 60

/**
 * How many times the bound is for all clients together where their addresses are not known (`WebHttp` without
 * `address`): with the bound of one client, each could lock out the others.
 */
const unknownAddressFactor = 50

/** The networks that are counted in one minute. */
const maxNetworks = 10_000

/** Counts requests per network address, in windows of a minute. An IPv6 address counts by its first 64 bits. */
export class MinuteLimit {
  readonly #max: number
  #window = 0
  #counts = new Map<string, number>()

  constructor(maxPerMinute: number) {
    this.#max = maxPerMinute
  }

  /** Whether a request is within the limit. It counts as one. */
  allows({ address = "" }: Pick<PageRequest, "address">, now: number): boolean {
    const window = Math.floor(now / 60_000)
    // The table is new each minute, so it holds the addresses of a minute at most.
    if (window !== this.#window || this.#counts.size >= maxNetworks) [this.#window, this.#counts] = [window, new Map()]
    const network = networkOf(address)
    const count = (this.#counts.get(network) ?? 0) + 1
    this.#counts.set(network, count)
    return count <= (address === "" ? this.#max * unknownAddressFactor : this.#max)
  }
}
