/**
 * Sessions over HTTP with the official clients: questions, progress, cancellation, coming back to a stream, and the end. What each
 * request of a client was answered is recorded, so that a client that goes on asking for ever is seen.
 */
import { Client as Client2, StreamableHTTPClientTransport as Http2 } from "@modelcontextprotocol/client"
import { Client as Client1 } from "@modelcontextprotocol/sdk/client/index.js"
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js"
import { StreamableHTTPClientTransport as Http1 } from "@modelcontextprotocol/sdk/client/streamableHttp.js"
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js"
import * as Elicitation from "@skein/server/Elicitation"
import * as LegacySse from "@skein/server/LegacySse"
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Polling from "@skein/server/Polling"
import * as Progress from "@skein/server/Progress"
import * as Tool from "@skein/server/Tool"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest"

const interrupted: Array<string> = []

const server = McpServer.layer(
  { name: "sessions", version: "1" },
  Tool.layer(Tool.make("echo", { input: { text: Schema.String } }), ({ text }) => Effect.succeed(text)),
  Tool.layer(
    Tool.make("ask"),
    () =>
      Effect.map(
        Elicitation.form("Who?", { name: Schema.String }),
        (answer) => answer.action === "accept" ? `Hello ${answer.content.name}` : answer.action
      )
  ),
  Tool.layer(Tool.make("stuck"), () =>
    Effect.andThen(Progress.report({ progress: 1 }), Effect.never).pipe(
      Effect.onInterrupt(() => Effect.sync(() => void interrupted.push("stuck")))
    )),
  Tool.layer(Tool.make("late"), () => Effect.as(Polling.disconnect(), "late")),
  Tool.layer(Tool.make("fails"), () => Effect.andThen(Progress.report({ progress: 1 }), Effect.die(new Error("no"))))
)

const scope = Scope.makeUnsafe()
let listening: NodeHttp.Listening["Service"]

beforeAll(async () => {
  const layer = NodeHttp.layer({ port: 0, retry: "10 millis", legacySse: LegacySse.make() }).pipe(Layer.provide(server))
  const built = await Effect.runPromise(Effect.orDie(Layer.buildWithScope(layer, scope)))
  listening = Context.get(built, NodeHttp.Listening)
})
afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

interface Sent {
  readonly method: string
  readonly resumes: string | null
  readonly status: number
}

/** What both clients have in common, as the tests use it. */
interface Connected {
  readonly call: (
    name: string,
    options?: { readonly signal?: AbortSignal; readonly progress?: () => void }
  ) => Promise<string>
  readonly end: () => Promise<void>
  readonly complaints: Array<Error>
  readonly sent: Array<Sent>
}

const recording = (sent: Array<Sent>) => async (url: string | URL, init?: RequestInit): Promise<Response> => {
  const response = await fetch(url, init)
  const resumes = new Headers(init?.headers).get("last-event-id")
  sent.push({ method: init?.method ?? "GET", resumes, status: response.status })
  return response
}

const text = (result: unknown): string => (result as { content: [{ text: string }] }).content[0].text

const capabilities = { capabilities: { elicitation: { form: {} } } }
const about = { name: "interop", version: "1" }
const answer = { action: "accept" as const, content: { name: "Ada" } }

const v1 = async (transport?: SSEClientTransport): Promise<Connected> => {
  const sent: Array<Sent> = []
  const complaints: Array<Error> = []
  const client = new Client1(about, capabilities)
  client.onerror = (error) => void complaints.push(error)
  client.setRequestHandler(ElicitRequestSchema, () => answer)
  const http = new Http1(new URL(listening.url), { fetch: recording(sent) })
  await client.connect((transport ?? http) as Parameters<Client1["connect"]>[0])
  return {
    call: async (name, { progress, signal } = {}) =>
      text(
        await client.callTool({ name, arguments: { text: "hi" } }, undefined, {
          ...(signal === undefined ? undefined : { signal }),
          ...(progress === undefined ? undefined : { onprogress: progress })
        })
      ),
    end: async () => {
      if (transport === undefined) await http.terminateSession()
      await client.close()
    },
    complaints,
    sent
  }
}

const v2 = async (): Promise<Connected> => {
  const sent: Array<Sent> = []
  const complaints: Array<Error> = []
  const client = new Client2(about, capabilities)
  client.onerror = (error) => void complaints.push(error)
  client.setRequestHandler("elicitation/create", () => answer)
  const http = new Http2(new URL(listening.url), { fetch: recording(sent) })
  await client.connect(http)
  return {
    call: async (name, { progress, signal } = {}) =>
      text(
        await client.callTool({ name, arguments: { text: "hi" } }, {
          ...(signal === undefined ? undefined : { signal }),
          ...(progress === undefined ? undefined : { onprogress: progress })
        })
      ),
    end: async () => {
      await http.terminateSession()
      await client.close()
    },
    complaints,
    sent
  }
}

/** Calls, and cancels once there was progress. */
const cancel = async (client: Connected): Promise<void> => {
  const controller = new AbortController()
  const called = client.call("stuck", { signal: controller.signal, progress: () => controller.abort() })
  await expect(called).rejects.toThrow(/.+/)
  await vi.waitFor(() => expect(interrupted).toEqual(["stuck"]))
}

beforeEach(() => void interrupted.splice(0))

for (const [name, connect] of [["sdk-v1", v1], ["sdk-v2", v2]] as const) {
  describe(`a session of ${name}`, () => {
    let client: Connected
    beforeEach(async () => {
      client = await connect()
    })
    afterEach(async () => {
      await client.end()
      expect(listening.endpoint.sessions).toBe(0)
    })

    it("a call, a question and its answer", async () => {
      expect(await client.call("echo")).toBe("hi")
      expect(await client.call("ask")).toBe("Hello Ada")
      expect(client.complaints).toEqual([])
    })

    it("comes back for the answer when the server ends the connection", async () => {
      expect(await client.call("late")).toBe("late")
      const resumed = client.sent.filter(({ resumes }) => resumes !== null)
      expect(resumed).toEqual([{ method: "GET", resumes: expect.any(String), status: 200 }])
      expect(client.complaints).toEqual([])
    })

    it("cancels, and does not go on coming back to a stream that is over", async () => {
      await cancel(client)
      // Whether or not it comes back once, a later exchange shows that it has stopped.
      for (let n = 0; n < 5; n++) expect(await client.call("late")).toBe("late")
      const resumed = client.sent.filter(({ resumes }) => resumes !== null)
      expect(resumed.filter(({ status }) => status === 204).length).toBeLessThanOrEqual(1)
      expect(resumed.filter(({ status }) => status === 200)).toHaveLength(5)
      expect(resumed.filter(({ status }) => status !== 200 && status !== 204)).toEqual([])
    })

    it("an error on a stream is its end", async () => {
      await expect(client.call("fails", { progress: () => {} })).rejects.toThrow(/.+/)
      for (let n = 0; n < 5; n++) expect(await client.call("late")).toBe("late")
      const resumed = client.sent.filter(({ resumes }) => resumes !== null)
      expect(resumed.filter(({ status }) => status === 204).length).toBeLessThanOrEqual(1)
      expect(resumed.filter(({ status }) => status === 200)).toHaveLength(5)
    })
  })
}

describe("the SSE client of sdk-v1", () => {
  it("a call, a question, progress, cancellation, and the end with its stream", async () => {
    const client = await v1(new SSEClientTransport(new URL("/sse", listening.url)))
    expect(listening.endpoint.sessions).toBe(1)
    expect(await client.call("echo")).toBe("hi")
    expect(await client.call("ask")).toBe("Hello Ada")
    await cancel(client)
    expect(client.complaints).toEqual([])
    await client.end()
    await vi.waitFor(() => expect(listening.endpoint.sessions).toBe(0))
  })
})
