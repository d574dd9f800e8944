/**
 * The clients of the suite behind one face, so that each expectation is written once.
 */
import type { Revision } from "@skein/protocol/Revision"

/** A block of content, or the contents of a resource, as it came; the expectations look inside. */
export type Block = Readonly<Record<string, unknown>>

export interface CallOutcome {
  readonly content: ReadonlyArray<Block>
  readonly structuredContent?: unknown
  readonly isError: boolean
}

export interface ProgressNote {
  readonly progress: number
  readonly total: number | undefined
  readonly message: string | undefined
}

export interface CallOptions {
  readonly onProgress?: (note: ProgressNote) => void
  readonly signal?: AbortSignal
}

export interface AnyClient {
  /** The revision that was agreed on. */
  readonly revision: string | undefined
  readonly serverName: string | undefined
  readonly instructions: string | undefined
  /** The server's process, where the client tells. */
  readonly pid: number | undefined
  /** What an SDK client complains of out of band: lines that are no message, answers to nothing, progress of nothing. */
  readonly complaints: ReadonlyArray<Error>
  readonly tools: () => Promise<ReadonlyArray<Block>>
  readonly call: (name: string, args: Block, options?: CallOptions) => Promise<CallOutcome>
  /** Every page of the resources, as URIs. */
  readonly resources: () => Promise<ReadonlyArray<string>>
  readonly templates: () => Promise<ReadonlyArray<string>>
  readonly read: (uri: string) => Promise<ReadonlyArray<Block>>
  readonly prompts: () => Promise<ReadonlyArray<Block>>
  readonly prompt: (name: string, args: Readonly<Record<string, string>>) => Promise<ReadonlyArray<Block>>
  readonly close: () => Promise<void>
}

/** A program that serves the offer over stdio. */
export interface ServerCommand {
  readonly command: string
  readonly args: ReadonlyArray<string>
}

/** Where a server listens: Streamable HTTP, or the HTTP+SSE pair of 2024-11-05. */
export interface ServerAddress {
  readonly transport: "http" | "sse"
  readonly url: string
}

/**
 * Connects to a server. `revision` holds the client to one; `auto` lets it find out the newest that both speak; without either
 * it is as it comes.
 */
export type Connect = (server: ServerCommand, revision: Revision | "auto" | undefined) => Promise<AnyClient>

/** A request of a client over HTTP, and how it was answered. */
export interface Sent {
  readonly verb: string
  /** The method of the message that it posted, where that is a request or a notification. */
  readonly method: string | undefined
  readonly headers: Headers
  readonly status: number
  readonly contentType: string | null
}

/** What a client was told without having asked for it just then. */
export interface Heard {
  readonly updated: Array<string>
  /** The visits that are over, by their ids. */
  readonly completed: Array<string>
  /** The lists that have changed: `tools`, `resources`, `prompts`. */
  readonly lists: Array<string>
  readonly logs: Array<{ readonly level: string; readonly logger?: string | undefined; readonly data: unknown }>
}

/** What a client can be told of: a list, a resource. */
export interface Watch {
  readonly tools?: boolean
  readonly resource?: string
}

/** An official client, with all that it does beside asking: it answers, listens, and goes. */
export interface TalkingClient extends AnyClient {
  readonly heard: Heard
  /** The methods of what it was asked, in order. It answers as `answers` says. */
  readonly asked: ReadonlyArray<string>
  /** What it has sent over HTTP, once that was answered. */
  readonly sent: ReadonlyArray<Sent>
  readonly sessionId: string | undefined
  /** Wants to hear of something until what this answers is called. */
  readonly watch: (what: Watch) => Promise<() => Promise<void>>
  /** Calls a tool, and wants its logs from this level on. In the session era that goes for all calls after it. */
  readonly logged: (level: "debug" | "warning", name: string, args: Block) => Promise<CallOutcome>
  readonly completePrompt: (name: string, argument: string, value: string) => Promise<ReadonlyArray<string>>
  readonly completeTemplate: (uri: string, variable: string, value: string) => Promise<ReadonlyArray<string>>
  readonly ping: () => Promise<unknown>
  /** Ends the session with DELETE, where there is one. */
  readonly terminate: () => Promise<void>
}

/** What an official client is told when it is made. */
export interface TalkOptions {
  readonly revision?: Revision | "auto" | undefined
  /** The name that its user enters; `Ada` by default. */
  readonly user?: string | undefined
}

/** Connects an official client. */
export type ConnectTalking = (
  server: ServerCommand | ServerAddress,
  options?: TalkOptions
) => Promise<TalkingClient>

/** What an official client answers when it is asked. The user declines what begins with `Decline`, and goes to every address. */
export const answers = (user: string) => ({
  elicit: ({ message, mode }: { readonly message: string; readonly mode?: string | undefined }) => {
    if (message.startsWith("Decline")) return { action: "decline" as const }
    return { action: "accept" as const, ...(mode === "url" ? {} : { content: { name: user } }) }
  },
  sample: { model: "interop", role: "assistant" as const, content: { type: "text" as const, text: `${user} said` } },
  roots: { roots: [{ uri: `file:///home/${user}`, name: "home" }] }
})

/** What an official client says that it can be asked. */
export const capabilities = { elicitation: { form: {}, url: {} }, sampling: {}, roots: { listChanged: true } }

/** How soon an official client comes back to a stream where the server does not say, which it does since 2025-11-25. */
export const soon = {
  initialReconnectionDelay: 10,
  maxReconnectionDelay: 1_000,
  reconnectionDelayGrowFactor: 1.5,
  maxRetries: 5
}

/** `fetch` that records what was sent. */
export const recording = (sent: Array<Sent>) => async (url: string | URL, init?: RequestInit): Promise<Response> => {
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
