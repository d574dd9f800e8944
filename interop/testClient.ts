/**
 * One interface for all clients of the suite, so that each test is written once. The wrappers are `skeinClient.ts`,
 * `sdkV1Client.ts` and `sdkV2Client.ts`.
 */
import type { Revision } from "@skein/protocol/Revision"

/** A content block, or the contents of a resource, as received. */
export type Block = Readonly<Record<string, unknown>>

export interface CallOutcome {
  readonly content: ReadonlyArray<Block>
  readonly structuredContent?: unknown
  readonly isError: boolean
}

export interface ProgressReport {
  readonly progress: number
  readonly total: number | undefined
  readonly message: string | undefined
}

export interface CallOptions {
  readonly onProgress?: (note: ProgressReport) => void
  readonly signal?: AbortSignal
}

export interface TestClient {
  /** The negotiated revision. */
  readonly revision: string | undefined
  readonly serverName: string | undefined
  readonly instructions: string | undefined
  /** The id of the server's process, if the client reports it. */
  readonly pid: number | undefined
  /** Errors that an SDK client reports outside of calls: invalid lines, responses or progress without a request. */
  readonly clientErrors: ReadonlyArray<Error>
  readonly tools: () => Promise<ReadonlyArray<Block>>
  readonly call: (name: string, args: Block, options?: CallOptions) => Promise<CallOutcome>
  /** The URIs of all pages of resources. */
  readonly resources: () => Promise<ReadonlyArray<string>>
  readonly templates: () => Promise<ReadonlyArray<string>>
  readonly read: (uri: string) => Promise<ReadonlyArray<Block>>
  readonly prompts: () => Promise<ReadonlyArray<Block>>
  readonly prompt: (name: string, args: Readonly<Record<string, string>>) => Promise<ReadonlyArray<Block>>
  readonly close: () => Promise<void>
}

/** The command of a server over stdio. */
export interface ServerCommand {
  readonly command: string
  readonly args: ReadonlyArray<string>
}

/** The URL of a server, over Streamable HTTP or over the HTTP+SSE transport of 2024-11-05. */
export interface ServerAddress {
  readonly transport: "http" | "sse"
  readonly url: string
}

export type AnyServer = ServerCommand | ServerAddress

/**
 * Connects to a server. With a revision, the client offers only that one. With `auto`, it negotiates the newest common
 * revision. Without either, it uses its defaults.
 */
export type Connect = (server: ServerCommand, revision: Revision | "auto" | undefined) => Promise<TestClient>

/** An HTTP request of a client, and its response. */
export interface SentRequest {
  readonly verb: string
  /** The method of the posted message, if it is a request or a notification. */
  readonly method: string | undefined
  readonly headers: Headers
  readonly status: number
  readonly contentType: string | null
}

/** The notifications that a client has received. */
export interface Received {
  readonly updated: Array<string>
  /** The ids of completed URL elicitations. */
  readonly completed: Array<string>
  /** The names of changed lists: `tools`, `resources`, `prompts`. */
  readonly lists: Array<string>
  readonly logs: Array<{ readonly level: string; readonly logger?: string | undefined; readonly data: unknown }>
}

/** A subscription to a list or a resource. */
export interface WatchFilter {
  readonly tools?: boolean
  readonly resource?: string
}

/** A client that also handles requests and notifications from the server. */
export interface InteractiveClient extends TestClient {
  readonly received: Received
  /** The methods of the requests that it received, in order. Its responses are `userAnswers`. */
  readonly asked: ReadonlyArray<string>
  /** The HTTP requests that have a response. */
  readonly sent: ReadonlyArray<SentRequest>
  readonly sessionId: string | undefined
  /** Subscribes to notifications, and returns a function that unsubscribes. */
  readonly watch: (filter: WatchFilter) => Promise<() => Promise<void>>
  /** Calls a tool with a log level. In a session the level stays set for later calls. */
  readonly logged: (level: "debug" | "warning", name: string, args: Block) => Promise<CallOutcome>
  readonly completePrompt: (name: string, argument: string, value: string) => Promise<ReadonlyArray<string>>
  readonly completeTemplate: (uri: string, variable: string, value: string) => Promise<ReadonlyArray<string>>
  readonly ping: () => Promise<unknown>
  /** Ends the session with DELETE, if there is one. */
  readonly terminate: () => Promise<void>
}

/** Options of an interactive client. */
export interface InteractiveOptions {
  readonly revision?: Revision | "auto" | undefined
  /** The name that its user enters into forms; `Ada` by default. */
  readonly user?: string | undefined
}

/** Connects an interactive client. */
export type ConnectInteractive = (
  server: AnyServer,
  options?: InteractiveOptions
) => Promise<InteractiveClient>

/** How clients respond to server requests. The user declines forms that begin with `Decline`, and accepts every URL. */
export const userAnswers = (user: string) => ({
  elicit: ({ message, mode }: { readonly message: string; readonly mode?: string | undefined }) => {
    if (message.startsWith("Decline")) return { action: "decline" as const }
    return { action: "accept" as const, ...(mode === "url" ? {} : { content: { name: user } }) }
  },
  sample: { model: "interop", role: "assistant" as const, content: { type: "text" as const, text: `${user} said` } },
  roots: { roots: [{ uri: `file:///home/${user}`, name: "home" }] }
})

/** The capabilities that official clients declare. */
export const capabilities = { elicitation: { form: {}, url: {} }, sampling: {}, roots: { listChanged: true } }

/** Short reconnection delays for official clients. Since 2025-11-25 the server sets the first delay. */
export const fastReconnection = {
  initialReconnectionDelay: 10,
  maxReconnectionDelay: 1_000,
  reconnectionDelayGrowFactor: 1.5,
  maxRetries: 5
}

/** A `fetch` that records its requests. */
export const recordingFetch =
  (sent: Array<SentRequest>) => async (url: string | URL, init?: RequestInit): Promise<Response> => {
    const response = await fetch(url, init)
    const message = typeof init?.body === "string" ? JSON.parse(init.body) as Block : undefined
    sent.push({
      verb: init?.method ?? "GET",
      method: message?.["method"] as string | undefined,
      headers: new Headers(init?.headers),
      status: response.status,
      contentType: response.headers.get("content-type")
    })
    return response
  }
