/**
 * The program of a faulty server over stdio: `node stdioProgram.js <scenario> <journal>`.
 */
import * as Effect from "effect/Effect"
import { appendFileSync } from "node:fs"
import type { Scenario } from "../Scenario.ts"
import { faultyTexts, type Json, parse } from "./faultyTexts.ts"
import { ClientRequests, makeProtocolHandler } from "./protocolHandler.ts"
import { exchangeKind, type Faults, faultSchedule } from "./faults.ts"

const [scenario, journal] = process.argv.slice(2) as [string, string]
const { faults: rules, ...features } = JSON.parse(scenario) as Scenario
const record = (line: object): void => appendFileSync(journal, `${JSON.stringify(line)}\n`)

let written: Promise<void> = Promise.resolve()

/** Writes one text after the other, so that texts do not mix while one of them is written byte by byte. */
const write = (bytes: Uint8Array, drip: boolean): Promise<void> => {
  written = writeAfter(written, bytes, drip ? 1 : Math.max(1, bytes.length))
  return written
}

const writeAfter = async (last: Promise<void>, bytes: Uint8Array, step: number): Promise<void> => {
  await last
  for (let at = 0; at < bytes.length; at += step) {
    await new Promise<void>((resolve) =>
      process.stdout.write(bytes.subarray(at, at + step), () => setImmediate(resolve))
    )
  }
}

const handler = makeProtocolHandler({ ...features, faults: [] }, record)
const nextFaults = faultSchedule(rules)
const requests = new ClientRequests()
let lastId: unknown = undefined

/** Writes the texts of one exchange and applies its faults. */
class ResponseLines {
  readonly #faults: Faults
  readonly #reversed: Array<string> = []
  #bytesLeft: number
  #isStalled: boolean

  constructor(faults: Faults) {
    this.#faults = faults
    this.#bytesLeft = faults.get("Cut")?.afterBytes ?? Infinity
    this.#isStalled = faults.get("Stall")?.after === "head"
  }

  send(text: string): void {
    if (this.#faults.has("Reverse")) this.#reversed.unshift(text)
    else this.#write(text)
  }

  end(): void {
    for (const text of this.#reversed.splice(0)) this.#write(text)
  }

  #write(text: string): void {
    if (this.#isStalled) return
    const formatting = this.#faults.get("Formatting")
    const line = `${formatting?.bom === true ? "\ufeff" : ""}${text}${formatting?.newline === "\r\n" ? "\r\n" : "\n"}`
    const bytes = new TextEncoder().encode(this.#faults.has("Duplicate") ? line + line : line)
    const part = bytes.subarray(0, this.#bytesLeft)
    this.#bytesLeft -= part.length
    this.#isStalled = this.#bytesLeft === 0 || this.#faults.get("Stall")?.after === "event"
    const isWritten = write(part, this.#faults.has("Drip"))
    if (this.#bytesLeft === 0) void isWritten.then(() => process.exit(1))
  }
}

const respond = Effect.fnUntraced(function*(request: Json, faults: Faults): Effect.fn.Return<void> {
  const lines = new ResponseLines(faults)
  const otherId = lastId
  lastId = request["id"]
  const restart = faults.get("Restart")
  if (restart?.handled === false) process.exit(restart.exitCode)
  const response = yield* handler.respond(request, requests.responder((text) => lines.send(text)))
  if (restart !== undefined) process.exit(restart.exitCode)
  for (const text of faultyTexts(response, faults, { request, otherId })) lines.send(text)
  lines.end()
})

const receive = (line: string): void => {
  const message = parse(line)
  if (message === undefined) return
  const faults = nextFaults(exchangeKind(message))
  if (faults.has("StopReading")) process.stdin.pause()
  if (faults.has("StopReading") || faults.get("Stall")?.after === "request") return
  if (message["method"] === undefined) {
    requests.complete(message)
    return
  }
  if (message["id"] === undefined) {
    const restart = faults.get("Restart") ?? (faults.has("Cut") ? { exitCode: 1 } : undefined)
    if (restart !== undefined) process.exit(restart.exitCode)
    return
  }
  const responding = respond(message, faults)
  const delay = faults.get("Delay")
  Effect.runFork(delay === undefined ? responding : Effect.delay(responding, delay.ms))
}

record({ pid: process.pid })
let rest = ""
process.stdin.setEncoding("utf8")
process.stdin.on("data", (text: string) => {
  const lines = (rest + text).split("\n")
  rest = lines.pop() ?? ""
  for (const line of lines) receive(line)
})
process.stdin.on("end", () => process.exit(0))
// The client has closed its end of the pipe.
process.stdout.on("error", () => process.exit(0))
