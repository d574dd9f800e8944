/**
 * Uses one published client library with several servers, and prints what it reads as JSON:
 * `node main.ts <library> <servers>`. It runs as a process of its own, because the libraries have global state.
 */
import { text } from "node:stream/consumers"
import * as Features from "../../fixtures/features.ts"
import { libraries } from "./libraries.ts"
import type { Connection, Server } from "./library.ts"

/** The result of one request of a library, or its error. */
type Outcome = { readonly value: unknown } | { readonly error: unknown }

/** The answers of one server that a library reads, by request. */
export type LibraryReading = Readonly<Record<string, Outcome>>

const outcome = async (act: () => unknown): Promise<Outcome> => {
  try {
    return { value: await act() }
  } catch (error) {
    const { code, message } = error as { readonly code?: unknown; readonly message?: unknown }
    return { error: { ...(typeof code === "number" ? { code } : {}), message: String(message) } }
  }
}

/** Resumes `count` at its last step: otherwise the last report may arrive together with the result, and be dropped. */
const countWithProgress = async (connection: Connection): Promise<unknown> => {
  const notes: Array<unknown> = []
  let released: Promise<unknown> | undefined
  const result = await connection.call("count", { steps: 3 }, (note) => {
    const { message, progress, total } = note as Record<string, unknown>
    notes.push({ progress, total, message })
    if (progress === 3) released = connection.call("release", {})
  })
  await released
  return { notes, result }
}

const readAll = async (connection: Connection): Promise<LibraryReading> => {
  const reading: Record<string, Outcome> = {}
  const record = async (name: string, act: (() => unknown) | undefined) => {
    if (act !== undefined) reading[name] = await outcome(act)
  }
  const { call, prompt, read } = connection
  await record("handshake", connection.handshake)
  await record("tools", connection.tools)
  await record("call", () => call("greet", { name: "Ada" }))
  await record("call with unusual text", () => call("echo", { text: Features.unicode }))
  await record("structured content", () => call("add", { a: 2, b: 40 }))
  await record("tool error", () => call("fail", {}))
  await record("content types", () => call("gallery", {}))
  await record("wrong arguments", () => call("greet", { name: 1 }))
  await record("unknown tool", () => call("absent", {}))
  if (connection.hasProgress === true) await record("progress", () => countWithProgress(connection))
  await record("resources", connection.resources)
  await record("resource templates", connection.templates)
  if (read !== undefined) {
    await record("text resource", () => read(Features.textResource.uri))
    await record("binary resource", () => read(Features.blobResource.uri))
    await record("resource of a template", () => read("test://item/42"))
    await record("unknown resource", () => read("test://absent"))
  }
  await record("prompts", connection.prompts)
  if (prompt !== undefined) {
    await record("prompt", () => prompt("brief", { topic: "knots", tone: "dry" }))
    await record("prompt without a required argument", () => prompt("brief", {}))
  }
  await record("call after errors", () => call("greet", { name: "Grace" }))
  await record("close", async () => void await connection.close())
  return reading
}

const [, , name] = process.argv
const servers = JSON.parse(await text(process.stdin)) as Readonly<Record<string, Server>>
const library = libraries.find((library) => library.name === name)!
const readings: Record<string, LibraryReading | { readonly connect: Outcome }> = {}
for (const [server, address] of Object.entries(servers)) {
  const connected = await outcome(() => library.connect(address))
  readings[server] = "value" in connected ? await readAll(connected.value as Connection) : { connect: connected }
}
process.stdout.write(JSON.stringify(readings), () => process.exit(0))
