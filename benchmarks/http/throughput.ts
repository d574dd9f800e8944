/**
 * Answers per second: each server in turn, round by round, compared with bare Node in the same round.
 */
import { ratios, type Spread, spread } from "../lib/statistics.ts"
import { type Era, revisionOf } from "../stdio/wire.ts"
import { Client, textOf } from "./client.ts"
import type { Peer } from "./peers.ts"
import { failure, type Measure, type Row } from "./report.ts"
import { Server } from "./server.ts"
import { initialized, messagesOf, numbered, opening, type Question } from "./wire.ts"
import * as wrk from "./wrk.ts"

export interface Plan {
  /** Rounds, and how long a server is driven in each and before anything counts, in whole seconds. */
  readonly rounds: number
  readonly seconds: number
  readonly warmUp: number
}

export interface Race {
  readonly name: string
  readonly title: string
  /** What is counted, and how much of it an answer brings. */
  readonly unit: string
  readonly each: number
  readonly question: Question
  readonly connections: number
  /** Whether the answer is a stream. */
  readonly streams: boolean
}

/** Opens a session; where the server gives none, its absence. */
export const openSession = async (client: Client): Promise<string | undefined> => {
  const opened = await client.ask(opening)
  messagesOf(opened)
  const { status } = await client.ask(initialized(opened.session))
  if (status !== 202) throw new Error(`notifications/initialized was answered ${status}`)
  return opened.session
}

interface Burst extends wrk.Load {
  /** Processor time of the server, in milliseconds. */
  readonly cpu: number
}

/** One server in a race, ready to be driven. */
class Runner {
  readonly peer: Peer
  readonly bursts: Array<Burst> = []
  readonly #race: Race
  readonly #server: Server
  readonly #requests: ReadonlyArray<string>
  /** How large one answer is, in bytes. */
  readonly #size: number

  private constructor(peer: Peer, race: Race, server: Server, requests: ReadonlyArray<string>, size: number) {
    this.peer = peer
    this.#race = race
    this.#server = server
    this.#requests = requests
    this.#size = size
  }

  /** Starts the server, opens a session per connection where it has sessions, and looks at one answer closely. */
  static async start(peer: Peer, era: Era, race: Race): Promise<Runner> {
    const { connections, question, streams } = race
    const server = await Server.start(peer, [...question.args, ...(streams ? [] : peer.json ?? [])])
    const client = new Client(server.port, 1)
    try {
      const sessions: Array<string | undefined> = [era === "session" ? await openSession(client) : undefined]
      while (sessions[0] !== undefined && sessions.length < connections) sessions.push(await openSession(client))
      const requests = sessions.map((session) => question.request(era, session))
      const answer = await client.ask(numbered(requests[0]!, 1_000_000))
      question.check(messagesOf(answer))
      return new Runner(peer, race, server, requests.map((request) => textOf(server.port, request)), answer.bytes)
    } catch (error) {
      await server.stop()
      throw error
    } finally {
      client.close()
    }
  }

  /** Drives it and looks for the marks of a right answer in each. */
  async warmUp(seconds: number): Promise<void> {
    await this.#drive(seconds, this.#race.question.marks)
  }

  async burst(seconds: number): Promise<void> {
    this.bursts.push(await this.#drive(seconds))
  }

  async #drive(seconds: number, marks?: ReadonlyArray<string>): Promise<Burst> {
    const { connections } = this.#race
    const before = this.#server.cpu()
    const options = { port: this.#server.port, requests: this.#requests, connections, seconds }
    const load = await wrk.run(marks === undefined ? options : { ...options, marks })
    // At the end up to one answer per connection is there in part.
    const least = load.requests * this.#size
    if (load.bytes < least * 0.99 || load.bytes > (least + connections * this.#size) * 1.01) {
      throw new Error(`${load.requests} answers of ${load.bytes} bytes, where one has ${this.#size}`)
    }
    return { ...load, cpu: this.#server.cpu() - before }
  }

  /** How much of what is counted came per second. Bytes count, so that an answer that came in part counts in part. */
  rates(): ReadonlyArray<number> {
    return this.bursts.map(({ bytes, seconds }) => bytes / this.#size * this.#race.each / seconds)
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
    samples: { rate: rates, p50: bursts.map((burst) => burst.p50), p99: bursts.map((burst) => burst.p99) }
  }
}

/** Runs a race in one era. A peer that fails is told of, and the others go on; without bare Node there is no race. */
export const race = async (peers: ReadonlyArray<Peer>, era: Era, race: Race, plan: Plan): Promise<Measure> => {
  const runners: Array<Runner> = []
  const failures: Array<Row> = []
  const attempt = async (peer: Peer, effort: () => Promise<void>): Promise<boolean> => {
    try {
      await effort()
      return true
    } catch (error) {
      if (peer.name === "bare") throw error
      failures.push(failure(peer, error))
      return false
    }
  }
  try {
    for (const peer of peers.filter((peer) => peer.eras.includes(era))) {
      await attempt(peer, async () => void runners.push(await Runner.start(peer, era, race)))
    }
    const failed = new Set<Runner>()
    const each = async (effort: (runner: Runner) => Promise<void>): Promise<void> => {
      for (const runner of runners) {
        if (!failed.has(runner) && !await attempt(runner.peer, () => effort(runner))) failed.add(runner)
      }
    }
    await each((runner) => runner.warmUp(plan.warmUp))
    for (let round = 0; round < plan.rounds; round++) await each((runner) => runner.burst(plan.seconds))
    const base = runners[0]!.rates()
    return {
      name: race.name,
      era,
      title: `${race.title}, ${revisionOf[era]}`,
      columns: [
        { key: "ratio", title: `${race.unit}/s / bare`, unit: "ratio" },
        { key: "rate", title: `${race.unit}/s`, unit: "count" },
        { key: "p50", title: "p50 ms", unit: "decimal" },
        { key: "p99", title: "p99 ms", unit: "decimal" },
        { key: "micros", title: `server µs/${race.unit.slice(0, -1)}`, unit: "decimal" },
        { key: "busy", title: "server busy", unit: "percent" }
      ],
      rows: [
        ...runners.filter((runner) => !failed.has(runner)).map((runner) => rowOf(runner, base)),
        ...failures
      ]
    }
  } finally {
    await Promise.all(runners.map((runner) => runner.stop()))
  }
}
