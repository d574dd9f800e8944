/**
 * Responses per second: every server in each round, compared with bare Node in the same round.
 */
import { ratios, type Spread, spread } from "../lib/statistics.ts"
import { type Era, revisionOf } from "../stdio/messages.ts"
import { HttpClient, textOf } from "./httpClient.ts"
import type { Peer } from "./peers.ts"
import { failure, type Measure, type Row } from "./report.ts"
import { ServerProcess } from "./serverProcess.ts"
import { call, initialized, messagesOf, opening, type Operation, withId } from "./requests.ts"
import * as wrk from "./wrk.ts"

export interface Plan {
  /** The number of rounds, and the duration of a round and of the warm-up in whole seconds. */
  readonly rounds: number
  readonly seconds: number
  readonly warmUp: number
}

export interface Workload {
  readonly name: string
  readonly title: string
  /** The counted unit, and how many of them a response has. */
  readonly unit: string
  readonly perResponse: number
  readonly operation: Operation
  readonly connections: number
  /** Whether the response is a stream. */
  readonly streams: boolean
}

/** The workload of calls, which several benchmarks measure. */
export const calls: Workload = {
  name: "calls",
  title: "tools/call over HTTP, 32 connections",
  unit: "calls",
  perResponse: 1,
  operation: call,
  connections: 32,
  streams: false
}

/** Opens a session. Returns undefined if the server has no sessions. */
export const openSession = async (client: HttpClient): Promise<string | undefined> => {
  const opened = await client.send(opening)
  messagesOf(opened)
  const { status } = await client.send(initialized(opened.session))
  if (status !== 202) throw new Error(`notifications/initialized: status ${status} instead of 202`)
  return opened.session
}

interface Burst extends wrk.Load {
  /** Processor time of the server, in milliseconds. */
  readonly cpu: number
}

/** A running server under a workload. */
class Runner {
  readonly peer: Peer
  readonly bursts: Array<Burst> = []
  readonly #workload: Workload
  readonly #server: ServerProcess
  readonly #requests: ReadonlyArray<string>
  /** The size of one response in bytes. */
  readonly #size: number

  private constructor(
    peer: Peer,
    workload: Workload,
    server: ServerProcess,
    requests: ReadonlyArray<string>,
    size: number
  ) {
    this.peer = peer
    this.#workload = workload
    this.#server = server
    this.#requests = requests
    this.#size = size
  }

  /** Starts the server, opens a session per connection if it has sessions, and checks one response completely. */
  static async start(peer: Peer, era: Era, workload: Workload): Promise<Runner> {
    const { connections, operation, streams } = workload
    const server = await ServerProcess.start(peer, [...operation.args, ...(streams ? [] : peer.json ?? [])])
    const client = new HttpClient(server.port, 1)
    try {
      const sessions: Array<string | undefined> = [era === "session" ? await openSession(client) : undefined]
      while (sessions[0] !== undefined && sessions.length < connections) sessions.push(await openSession(client))
      const requests = sessions.map((session) => operation.request(era, session))
      const answer = await client.send(withId(requests[0]!, 1_000_000))
      operation.check(messagesOf(answer))
      return new Runner(peer, workload, server, requests.map((request) => textOf(server.port, request)), answer.bytes)
    } catch (error) {
      await server.stop()
      throw error
    } finally {
      client.close()
    }
  }

  /** Generates load, and checks each response for the marks of a correct one. */
  async warmUp(seconds: number): Promise<void> {
    await this.#drive(seconds, this.#workload.operation.marks)
  }

  async burst(seconds: number): Promise<void> {
    this.bursts.push(await this.#drive(seconds))
  }

  async #drive(seconds: number, marks?: ReadonlyArray<string>): Promise<Burst> {
    const { connections } = this.#workload
    const before = this.#server.cpu()
    const options = { port: this.#server.port, requests: this.#requests, connections, seconds }
    const load = await wrk.run(marks === undefined ? options : { ...options, marks })
    // At the end, up to one response per connection is incomplete.
    const least = load.requests * this.#size
    if (load.bytes < least * 0.99 || load.bytes > (least + connections * this.#size) * 1.01) {
      throw new Error(`${load.requests} responses with ${load.bytes} bytes in total, expected ${this.#size} bytes each`)
    }
    return { ...load, cpu: this.#server.cpu() - before }
  }

  /** Units per second. Computed from bytes, so that an incomplete response counts in part. */
  rates(): ReadonlyArray<number> {
    return this.bursts.map(({ bytes, seconds }) => bytes / this.#size * this.#workload.perResponse / seconds)
  }

  stop(): Promise<void> {
    return this.#server.stop()
  }
}

const total = (bursts: ReadonlyArray<Burst>, of: (burst: Burst) => number): number =>
  bursts.reduce((sum, burst) => sum + of(burst), 0)

const rowOf = (runner: Runner, base: ReadonlyArray<number>): Row => {
  const { bursts, peer } = runner
  const rates = runner.rates()
  const cpu = total(bursts, (burst) => burst.cpu)
  const micros = bursts.map((burst, index) => burst.cpu * 1_000 / (rates[index]! * burst.seconds))
  const median = (of: (burst: Burst) => number): Spread => spread(bursts.map(of))
  return {
    peer: peer.name,
    label: peer.label,
    figures: {
      ratio: ratios(rates, base),
      rate: spread(rates),
      p50: median((burst) => burst.p50),
      p99: median((burst) => burst.p99),
      micros: cpu * 1_000 / rates.reduce((sum, rate, index) => sum + rate * bursts[index]!.seconds, 0),
      busy: cpu / 10 / total(bursts, (burst) => burst.seconds)
    },
    samples: { rate: rates, micros, p50: bursts.map((burst) => burst.p50), p99: bursts.map((burst) => burst.p99) }
  }
}

/**
 * Measures a workload in one era. A peer that fails has a remark in the table; a failure of the first one, with which the
 * others are compared, ends the benchmark.
 */
export const measure = async (
  peers: ReadonlyArray<Peer>,
  era: Era,
  workload: Workload,
  plan: Plan,
  base: Pick<Peer, "name"> = { name: "bare" }
): Promise<Measure> => {
  const runners: Array<Runner> = []
  const failures: Array<Row> = []
  const attempt = async (peer: Peer, action: () => Promise<void>): Promise<boolean> => {
    try {
      await action()
      return true
    } catch (error) {
      if (peer.name === base.name) throw error
      failures.push(failure(peer, error))
      return false
    }
  }
  try {
    for (const peer of peers.filter((peer) => peer.eras.includes(era))) {
      await attempt(peer, async () => void runners.push(await Runner.start(peer, era, workload)))
    }
    const failed = new Set<Runner>()
    const each = async (action: (runner: Runner) => Promise<void>): Promise<void> => {
      for (const runner of runners) {
        if (!failed.has(runner) && !await attempt(runner.peer, () => action(runner))) failed.add(runner)
      }
    }
    await each((runner) => runner.warmUp(plan.warmUp))
    for (let round = 0; round < plan.rounds; round++) await each((runner) => runner.burst(plan.seconds))
    const rates = runners[0]!.rates()
    return {
      name: workload.name,
      era,
      title: `${workload.title}, ${revisionOf[era]}`,
      columns: [
        { key: "ratio", title: `${workload.unit}/s / ${base.name}`, unit: "ratio" },
        { key: "rate", title: `${workload.unit}/s`, unit: "count" },
        { key: "p50", title: "p50 ms", unit: "decimal" },
        { key: "p99", title: "p99 ms", unit: "decimal" },
        { key: "micros", title: `server µs/${workload.unit.slice(0, -1)}`, unit: "decimal" },
        { key: "busy", title: "server busy", unit: "percent" }
      ],
      rows: [
        ...runners.filter((runner) => !failed.has(runner)).map((runner) => rowOf(runner, rates)),
        ...failures
      ]
    }
  } finally {
    await Promise.all(runners.map((runner) => runner.stop()))
  }
}
