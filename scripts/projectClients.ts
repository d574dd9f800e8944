/**
 * Drives the servers of created projects with the client of the official SDK, for `npm run projects`: it lists their
 * tools, calls one, and answers the question of a task.
 */
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js"
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js"
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js"
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js"
import { spawn } from "node:child_process"

const conversion = {
  name: "convert",
  arguments: { value: 212, from: "F", to: "C" },
  expected: /"structuredContent":\{"value":100,"unit":"C"\}/
}

/** The tool of each template, with arguments and its result. */
const calls = {
  stdio: conversion,
  http: conversion,
  tasks: {
    name: "order",
    arguments: { item: "sencha", quantity: 2 },
    expected: /"text":"2 of sencha are on their way as parcel-/
  }
} as const

/** A template whose project is a server. */
export type ServerTemplate = keyof typeof calls

const drive = async (template: ServerTemplate, transport: Transport): Promise<void> => {
  const client = new Client({ name: "projects", version: "1.0.0" }, { capabilities: { elicitation: {} } })
  client.setRequestHandler(ElicitRequestSchema, () => ({ action: "accept", content: { address: "1 Tea Street" } }))
  await client.connect(transport)
  try {
    const { expected, ...call } = calls[template]
    const names = (await client.listTools()).tools.map(({ name }) => name)
    if (!names.includes(call.name)) throw new Error(`${template}: the tools are ${names.join(", ")}`)
    const result = JSON.stringify(await client.callTool(call))
    if (!expected.test(result)) throw new Error(`${template}: ${call.name} returned ${result}`)
  } finally {
    await client.close()
  }
}

/** Starts a server on stdio in a folder, and drives it. */
export const driveStdio = (cwd: string, command: string, args: ReadonlyArray<string>): Promise<void> =>
  drive("stdio", new StdioClientTransport({ command, args: [...args], cwd, stderr: "ignore" }))

/** Starts the bundle of a server over HTTP in its folder, probes and drives it, and stops it. */
export const driveHttp = (template: "http" | "tasks", cwd: string): Promise<void> =>
  new Promise((resolve, reject) => {
    const env = { ...process.env, SKEIN_PORT: "0", PACKING_SECONDS: "0.01" }
    const child = spawn(process.execPath, ["main.cjs"], { cwd, env, stdio: ["ignore", "ignore", "pipe"] })
    const answered = async (url: URL): Promise<void> => {
      const { status } = await fetch(new URL("/livez", url))
      if (status !== 200) throw new Error(`/livez: ${status}`)
      await drive(template, new StreamableHTTPClientTransport(url))
    }
    let log = ""
    let isDriven = false
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      log += text
      const url = /Listening on (http:\S+)/.exec(log)?.[1]
      if (url === undefined || isDriven) return
      isDriven = true
      answered(new URL(url)).finally(() => child.kill("SIGTERM")).then(resolve, reject)
    })
    child.once("exit", (code) => reject(new Error(`the server ended with ${code}: ${log}`)))
  })
