/**
 * A peer under test as a child process, and the messages to and from it.
 */
import { type Child, start, stop } from "../lib/childProcesses.ts"
import { cpuTime, cpuTimeOf } from "../lib/machine.ts"
import { call, type Era, initialized, makeVerifier, opening } from "./messages.ts"

/** A burst of calls. Times are in milliseconds. */
export interface Burst {
  readonly calls: number
  readonly wall: number
  readonly driverCpu: number
  readonly serverCpu: number | undefined
}

/** How long a peer may send nothing while a response is pending, in milliseconds. */
const silenceTimeout = 20_000

export class Connection {
  readonly child: Child
  readonly name: string
  readonly era: Era
  #rest = ""
  #lastId = 0
  #verify = makeVerifier()
  #onLines: (lines: ReadonlyArray<string>) => void = () => {}
  #ended: Error | undefined
  #onFailure: (error: Error) => void = () => {}

  constructor(name: string, era: Era, file: string, args?: ReadonlyArray<string>) {
    this.name = name
    this.era = era
    this.child = start(file, args)
    // With latin1 a chunk never splits a character. All compared text is ASCII.
    this.child.stdout.setEncoding("latin1")
    this.child.stdout.on("data", (chunk: string) => {
      const lines = (this.#rest + chunk).split("\n")
      this.#rest = lines.pop()!
      this.#onLines(lines)
    })
    this.child.stdout.once("close", () => {
      this.#ended = new Error(`${name} exited before it had responded`)
      this.#onFailure(this.#ended)
    })
  }

  /** Waits for the value that `body` resolves with. Fails when the peer exits or sends nothing for too long. */
  async #watched<A>(body: (succeed: (value: A) => void) => (lines: ReadonlyArray<string>) => void): Promise<A> {
    if (this.#ended !== undefined) throw this.#ended
    let lastOutput = performance.now()
    let timer: NodeJS.Timeout | undefined
    try {
      return await new Promise<A>((resolve, reject) => {
        const onLines = body(resolve)
        this.#onFailure = reject
        this.#onLines = (lines) => {
          lastOutput = performance.now()
          try {
            onLines(lines)
          } catch (error) {
            reject(error as Error)
          }
        }
        timer = setInterval(() => {
          if (performance.now() - lastOutput > silenceTimeout) {
            reject(new Error(`${this.name} sent nothing for ${silenceTimeout} ms`))
          }
        }, 1_000)
      })
    } finally {
      clearInterval(timer)
      this.#onLines = () => {}
      this.#onFailure = () => {}
    }
  }

  /** Sends the first request of the era. Resolves with the time at which its response arrived. */
  open(): Promise<number> {
    const id = ++this.#lastId
    return this.#watched<number>((succeed) => {
      this.child.stdin.write(opening(this.era, id))
      return (lines) => {
        const at = performance.now()
        for (const line of lines) {
          const message = JSON.parse(line)
          if (message.id !== id) continue
          if (message.result === undefined) throw new Error(`${this.name} rejected the first request: ${line}`)
          if (this.era === "session") this.child.stdin.write(initialized)
          succeed(at)
        }
      }
    })
  }

  /**
   * Keeps `inFlight` calls in flight for `duration` milliseconds, then waits for the last one. Verifies each response.
   */
  async burst(inFlight: number, duration: number): Promise<Burst> {
    const { era } = this
    const stdin = this.child.stdin
    const verify = this.#verify
    const pending = new Set<number>()
    const serverBefore = cpuTimeOf(this.child.pid!)
    const driverBefore = cpuTime()
    const begin = performance.now()
    let calls = 0
    const send = (many: number): void => {
      let out = ""
      for (let index = 0; index < many; index++) {
        const id = ++this.#lastId
        pending.add(id)
        out += call(era, id)
      }
      stdin.write(out, "latin1")
    }
    const wall = await this.#watched<number>((succeed) => {
      send(inFlight)
      return (lines) => {
        let responses = 0
        for (const line of lines) {
          if (!pending.delete(verify(line))) {
            throw new Error(`${this.name} sent an unexpected or repeated response: ${line}`)
          }
          responses++
        }
        calls += responses
        const elapsed = performance.now() - begin
        if (elapsed < duration) send(responses)
        else if (pending.size === 0) succeed(elapsed)
      }
    })
    const serverAfter = cpuTimeOf(this.child.pid!)
    return {
      calls,
      wall,
      driverCpu: cpuTime() - driverBefore,
      serverCpu: serverBefore === undefined || serverAfter === undefined ? undefined : serverAfter - serverBefore
    }
  }

  /** Closes the peer's stdin. Returns whether it exited without being killed. */
  close(): Promise<boolean> {
    return stop(this.child)
  }
}
