/**
 * The observations of the clients of a walk, and whether they are allowed.
 */

/** A period in which some requests may fail: from the begin of a fault until a while after its end. */
export interface Fault {
  readonly what: string
  readonly from: number
  to: number
  /** The processes of its nodes; none if it is one of the database. */
  readonly pids: ReadonlySet<number>
}

/** The faults after which the other nodes may take a node for gone. */
const losesLease = new Set(["a node stopped", "a node slow", "a node cut from the database"])

/** A call that was not answered with its result. */
export interface Failure {
  readonly key: string
  readonly why: string
  /** Whether the answer says that the call has not run. */
  readonly isRefused: boolean
  readonly from: number
  readonly to: number
}

/** The change of a resource whose subscriber has not heard of it yet. */
export interface Touch {
  readonly uri: string
  readonly from: number
  /** Whether the tool that reports the change was answered. */
  isAcknowledged: boolean
}

/** Milliseconds after a fault in which its consequences may show: the lease of a node, and the time to connect again. */
const aftermath = 8_000

const seconds = (milliseconds: number): string => `${(milliseconds / 1_000).toFixed(1)} s`

export class Records {
  readonly problems: Array<string> = []
  readonly faults: Array<Fault> = []
  readonly failures: Array<Failure> = []
  /** The calls that were answered with their result. */
  readonly answered = new Map<string, number>()
  readonly touches = new Map<string, Touch>()
  readonly #counts = new Map<string, number>()
  readonly #began = performance.now()

  get now(): number {
    return performance.now() - this.#began
  }

  count(what: string): void {
    this.#counts.set(what, (this.#counts.get(what) ?? 0) + 1)
  }

  countOf(what: string): number {
    return this.#counts.get(what) ?? 0
  }

  problem(what: string): void {
    const latest = this.faults.slice(-3).map(({ from, what }) => `${what} at ${seconds(from)}`).join(", ")
    this.problems.push(`${seconds(this.now)}: ${what} (faults: ${latest || "none"})`)
  }

  /** Whether a fault can be the reason of what has happened in a period. */
  isExplained(from: number, to: number, isMeant: (fault: Fault) => boolean = () => true): boolean {
    return this.faults.some((fault) => isMeant(fault) && fault.from <= to && fault.to + aftermath >= from)
  }

  /** An answer that would be wrong without a fault. */
  unexpected(what: string, from: number): void {
    this.count(what)
    if (!this.isExplained(from, this.now)) this.problem(`${what}, without a fault`)
  }

  /** The subscriber of a resource has been notified. */
  heard(uri: string): void {
    if (this.touches.delete(uri)) this.count("notifications")
  }

  /** The changes that the subscribers have not heard of. */
  get unheard(): ReadonlyArray<string> {
    return [...this.touches.values()].filter(({ isAcknowledged }) => isAcknowledged).map(({ from, uri }) => {
      const around = this.faults.filter((fault) => fault.from <= from + 10_000 && fault.to + aftermath >= from)
      const during = around.map((fault) => `${fault.what} ${seconds(fault.from)} to ${seconds(fault.to)}`)
      return `${uri} changed at ${seconds(from)}, and its subscriber was not notified (faults: ${during.join(", ")})`
    })
  }

  /**
   * Whether a call that a process has run may have failed: its process was killed, the others could take it for gone, it
   * shut down while another fault held back what the call waited for, or the database may have lost its events.
   */
  #mayFail(pid: number, { from, to }: Failure, killed: ReadonlySet<number>): boolean {
    const isOf = ({ pids }: Fault) => pids.has(pid)
    return killed.has(pid) ||
      this.isExplained(from, to, ({ what }) => what.includes("database") && !what.includes("node")) ||
      this.isExplained(from, to, (fault) => isOf(fault) && losesLease.has(fault.what)) ||
      (this.isExplained(from, to, (fault) => isOf(fault) && fault.what === "a node drains") &&
        this.isExplained(from, to, (fault) => !isOf(fault)))
  }

  /** Compares the answers with the calls that have run. Each is a key, and the process that has run it. */
  compare(calls: ReadonlyArray<readonly [key: string, pid: number]>, killed: ReadonlySet<number>): void {
    const runs = new Map<string, number>()
    for (const [key] of calls) runs.set(key, (runs.get(key) ?? 0) + 1)
    for (const [key, count] of runs) if (count > 1) this.problems.push(`call ${key} has run ${count} times`)
    for (const [key, count] of this.answered) {
      if (count > 1) this.problems.push(`call ${key} was answered ${count} times`)
      if (!runs.has(key)) this.problems.push(`call ${key} was answered, and has not run`)
    }
    for (const failure of this.failures) {
      const { from, isRefused, key, to, why } = failure
      if (isRefused && runs.has(key)) this.problems.push(`call ${key} has run, and was refused: ${why}`)
      const pid = calls.find(([other]) => other === key)?.[1]
      if (pid !== undefined && !isRefused && !this.#mayFail(pid, failure, killed)) {
        this.problems.push(
          `call ${key} failed from ${seconds(from)} to ${seconds(to)}, and its node was not killed: ${why}`
        )
      } else if (!this.isExplained(from, to)) {
        this.problems.push(`call ${key} failed from ${seconds(from)} to ${seconds(to)}, without a fault: ${why}`)
      }
    }
  }

  /** The counts, the largest first. */
  get summary(): string {
    const reasons = new Map<string, number>()
    for (const { why } of this.failures) reasons.set(why, (reasons.get(why) ?? 0) + 1)
    const list = (counts: ReadonlyMap<string, number>) =>
      [...counts].toSorted((one, other) => other[1] - one[1]).map(([what, count]) => `${count} ${what}`).join(", ")
    return `${this.answered.size} calls answered, ${this.failures.length} failed` +
      (reasons.size === 0 ? "" : ` (${list(reasons)})`) + `; ${list(this.#counts)}`
  }
}
