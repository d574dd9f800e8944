/**
 * A simulation of the leases of a fleet in virtual time: every node is there, and the database is a queue with a number of
 * cores. It is down for a while; afterwards each node renews its lease, and reads its sessions again, as the nodes of
 * `@skein/fleet` do.
 */
import type { Units } from "./model.ts"

export interface Plan {
  readonly nodes: number
  readonly sessions: number
  /** How many of the sessions are simulated: the time of the others is as long. */
  readonly simulated: number
  readonly cores: number
  /** The part of the processor time of the database that the calls of clients use. */
  readonly busy: number
  /** How long the database is down, in seconds. */
  readonly outage: number
}

export interface Outcome {
  /** The seconds of the longest renewal before the outage, and afterwards. */
  readonly renewal: number
  readonly renewalAfter: number
  /** How many leases ended although the database was up. */
  readonly lost: number
  /** The seconds from the end of the outage until all sessions are read again. */
  readonly recovery: number
}

interface Event {
  readonly at: number
  readonly run: () => void
}

/** Events in the order of their time: a binary heap. */
class Agenda {
  readonly #heap: Array<Event> = []
  now = 0

  add(at: number, run: () => void): void {
    const heap = this.#heap
    let index = heap.push({ at, run }) - 1
    while (index > 0) {
      const parent = (index - 1) >> 1
      if (heap[parent]!.at <= heap[index]!.at) break
      ;[heap[parent], heap[index]] = [heap[index]!, heap[parent]!]
      index = parent
    }
  }

  /** Runs the events before a time. */
  run(end: number): void {
    for (let next = this.#heap[0]; next !== undefined && next.at <= end; next = this.#heap[0]) {
      const last = this.#heap.pop()!
      if (this.#heap.length > 0) this.#sink(last)
      this.now = next.at
      next.run()
    }
    this.now = end
  }

  #sink(event: Event): void {
    const heap = this.#heap
    let index = 0
    for (;;) {
      const left = 2 * index + 1
      const child = left + 1 < heap.length && heap[left + 1]!.at < heap[left]!.at ? left + 1 : left
      if (child >= heap.length || heap[child]!.at >= event.at) break
      heap[index] = heap[child]!
      index = child
    }
    heap[index] = event
  }
}

// As in the fleet: seconds of a lease, and how many sessions a node reads at the same time.
const lease = 5
const concurrency = 8
const warmUp = 20
const most = 3_600

/** Simulates a fleet. The result is the same in each run. */
export const simulate = (
  { find, renew, renewPerNode }: Pick<Units, "find" | "renew" | "renewPerNode">,
  { busy, cores, nodes, outage, sessions, simulated }: Plan
): Outcome => {
  const agenda = new Agenda()
  const down = { from: warmUp, to: warmUp + outage }
  /** When each core of the database is free. */
  const free = Array.from({ length: cores }, () => 0)
  const execute = (micros: number, done: () => void): void => {
    let core = 0
    for (let other = 1; other < cores; other++) if (free[other]! < free[core]!) core = other
    let start = Math.max(agenda.now, free[core]!)
    if (start >= down.from && start < down.to) start = down.to
    free[core] = start + micros / 1e6 / (1 - busy)
    agenda.add(free[core]!, done)
  }
  let renewal = 0
  let renewalAfter = 0
  let lost = 0
  let unread = nodes
  let recovery = 0
  /** Reads the sessions of a node. */
  const read = (count: number): void => {
    let left = Math.max(1, Math.round(count))
    let waiting = left
    const next = (): void => {
      if (waiting === 0) return
      waiting--
      execute(find, () => {
        if (--left > 0) next()
        else if (--unread === 0) recovery = agenda.now - down.to
      })
    }
    for (let n = 0; n < concurrency; n++) next()
  }
  const node = (index: number): void => {
    let renewedAt = 0
    let hasRead = false
    const cycle = (): void => {
      const at = agenda.now
      execute(renew + renewPerNode * nodes, () => {
        const took = agenda.now - at
        const isAfter = agenda.now >= down.to
        if (!isAfter) renewal = Math.max(renewal, took)
        else if (at >= down.to) renewalAfter = Math.max(renewalAfter, took)
        if (agenda.now - renewedAt > lease && (agenda.now < down.from || renewedAt > down.to)) lost++
        if (isAfter && !hasRead) {
          hasRead = true
          read(Math.min(simulated, sessions) / nodes)
        }
        renewedAt = agenda.now
        agenda.add(agenda.now + lease / 3, cycle)
      })
    }
    agenda.add(index / nodes * lease / 3, cycle)
  }
  for (let index = 0; index < nodes; index++) node(index)
  for (let end = down.to + 10; end <= most && unread > 0; end += 10) agenda.run(end)
  return { renewal, renewalAfter, lost, recovery: unread > 0 ? Infinity : recovery * Math.max(1, sessions / simulated) }
}
