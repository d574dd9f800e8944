/**
 * Runs the scenarios against a server, many clients at a time.
 */
import { RawClient } from "./rawClient.ts"
import { RawConnection } from "./rawConnection.ts"
import { runScenario, type Scenario, scenarios } from "./scenarios.ts"

/** How many clients run at a time. */
const concurrency = 100

export class Load {
  sessions = 0
  streams = 0
  /** Failures by message, with the number of times each occurred. */
  readonly failures = new Map<string, number>()
  readonly runs = new Map<Scenario, number>(scenarios.map((scenario) => [scenario, 0]))
  readonly #running = new Map<RawClient, Scenario>()
  readonly #port: number
  #clients = 0
  #round = 0
  #next = 0

  constructor(port: number) {
    this.#port = port
  }

  /**
   * Opens and resets more connections than there will be at any later moment. Node reuses the buffers of a closed
   * connection, so they must be allocated before the baseline.
   */
  async openManyConnections(): Promise<void> {
    const connections = Array.from({ length: 4 * concurrency }, () => new RawConnection(this.#port))
    for (const connection of connections) connection.write("POST /mcp")
    await Promise.all(connections.map(({ flushed }) => flushed))
    await Promise.all(connections.map((connection) => connection.close("reset")))
  }

  /** Runs scenarios until the given numbers of sessions and streams have been opened. */
  async run(sessions: number, streams: number): Promise<void> {
    const worker = async (): Promise<void> => {
      while (this.sessions < sessions || this.streams < streams) await this.#run(this.#nextScenario())
    }
    await Promise.all(Array.from({ length: concurrency }, worker))
  }

  /** Describes the scenarios that are running. */
  describe(): string {
    const counts = Map.groupBy(this.#running.values(), ({ name }) => name)
    return [...counts].map(([name, running]) => `${running.length} × ${name}`).join("\n")
  }

  #nextScenario(): Scenario {
    for (;;) {
      if (this.#next === scenarios.length) {
        this.#next = 0
        this.#round++
      }
      const scenario = scenarios[this.#next++]!
      if (this.#round % (scenario.every ?? 1) === 0) return scenario
    }
  }

  async #run(scenario: Scenario): Promise<void> {
    const client = new RawClient(this.#port, `user-${++this.#clients}`, this.#round)
    // Counted before it runs, so that the workers together do not start more than `run` was asked for.
    this.sessions += scenario.sessions
    this.streams += scenario.streams
    this.runs.set(scenario, this.runs.get(scenario)! + 1)
    this.#running.set(client, scenario)
    try {
      await runScenario(scenario, client)
    } catch (error) {
      const failure = `${scenario.name}: ${error instanceof Error ? error.message : error}`.slice(0, 200)
      this.failures.set(failure, (this.failures.get(failure) ?? 0) + 1)
    }
    await client.close()
    this.#running.delete(client)
  }
}
