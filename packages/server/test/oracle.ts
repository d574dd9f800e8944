/**
 * Validates the messages of a server against the official schemas of their revision: responses, notifications and
 * requests.
 */
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import * as Revision from "@skein/protocol/Revision"
import * as Exceptions from "../../protocol/test/oracle/Exceptions.ts"
import * as Spec from "../../protocol/test/oracle/Spec.ts"
import * as Validate from "../../protocol/test/oracle/Validate.ts"

/** A message as it is on the wire. Tests read any member of it. */
export type Json = any

/** The definition of each method's result. */
export const results: { readonly [method: string]: string } = {
  initialize: "InitializeResult",
  "server/discover": "DiscoverResult",
  ping: "EmptyResult",
  "logging/setLevel": "EmptyResult",
  "tools/list": "ListToolsResult",
  "tools/call": "CallToolResult",
  "resources/list": "ListResourcesResult",
  "resources/templates/list": "ListResourceTemplatesResult",
  "resources/read": "ReadResourceResult",
  "resources/subscribe": "EmptyResult",
  "resources/unsubscribe": "EmptyResult",
  "prompts/list": "ListPromptsResult",
  "prompts/get": "GetPromptResult",
  "completion/complete": "CompleteResult",
  "subscriptions/listen": "SubscriptionsListenResult"
}

/** The same for tasks: those of 2025-11-25, and those of the extension, which has a separate schema. */
const ofTasks: { readonly [document: string]: { readonly [method: string]: string } } = {
  "2025-11-25": {
    "tasks/get": "GetTaskResult",
    "tasks/result": "GetTaskPayloadResult",
    "tasks/list": "ListTasksResult",
    "tasks/cancel": "CancelTaskResult"
  },
  tasks: {
    "tasks/get": "GetTaskResult",
    "tasks/update": "UpdateTaskResult",
    "tasks/cancel": "CancelTaskResult"
  }
}

/** Whether these tests can validate the result of a method. */
export const knows = (method: string): boolean =>
  method in results || Object.values(ofTasks).some((names) => method in names)

/** A call may be answered with a task: if the client requested one, or since 2026-07-28 if the server decides so. */
const isTask = (revision: Revision.Revision, method: string, result: Json): boolean =>
  method === "tools/call" &&
  (revision === "2025-11-25" ? "task" in result && !("content" in result) : result.resultType === "task")

/** The document that has the definition of a result, and its name. */
const definitionOfResult = (
  revision: Revision.Revision,
  method: string,
  result: Json
): readonly [Spec.DocumentName, string | undefined] => {
  const document = revision === "2026-07-28" ? "tasks" : revision
  if (isTask(revision, method, result)) return [document, "CreateTaskResult"]
  const ofTask = ofTasks[document]?.[method]
  return ofTask === undefined ? [revision, results[method]] : [document, ofTask]
}

/** The errors that have a separate definition since 2026-07-28. */
const errors: ReadonlyMap<number, string> = new Map([
  [-32700, "ParseError"],
  [-32600, "InvalidRequestError"],
  [-32601, "MethodNotFoundError"],
  [-32602, "InvalidParamsError"],
  [-32603, "InternalError"],
  [-32020, "HeaderMismatchError"],
  [-32021, "MissingRequiredClientCapabilityError"],
  [-32022, "UnsupportedProtocolVersionError"]
])

/** The number of messages that the official schemas have accepted in this process. */
export const validated = { count: 0 }

/** Throws the faults of a value by the official schema. */
export const accept = (revision: Spec.DocumentName, definition: string, value: unknown): void => {
  if (!Spec.present) return
  const refusal = Validate.refusal(Exceptions.load(revision), definition, value)
  if (refusal !== undefined) throw new Error(`${revision} ${definition}: ${refusal}\n${JSON.stringify(value)}`)
  validated.count++
}

const failure = (revision: Revision.Revision, message: Json): void => {
  // No form of an error without an id is known that satisfies the schemas before 2025-11-25.
  const nameless = message.id === undefined && revision < "2025-11-25"
  const spoken = nameless ? "2025-11-25" : revision
  accept(spoken, spoken >= "2025-11-25" ? "JSONRPCErrorResponse" : "JSONRPCError", message)
  if (revision < "2026-07-28") return
  const { code } = message.error
  const definition = errors.get(code)
  // "Implementations MUST NOT emit any code from this sub-range that is not defined by this specification", nor older ones.
  if (definition === undefined && (code === -32002 || (code <= -32020 && code >= -32099))) {
    throw new Error(`${revision}: nobody may say ${code}`)
  }
  const whole = definition === "HeaderMismatchError" || definition === "MissingRequiredClientCapabilityError" ||
    definition === "UnsupportedProtocolVersionError"
  if (definition !== undefined) accept(revision, definition, whole ? message : message.error)
}

/** Throws the faults of the response to a request by the official schema. */
export const answer = (revision: Revision.Revision, method: string, message: Json): void => {
  if (message.error !== undefined) return failure(revision, message)
  accept(revision, revision >= "2025-11-25" ? "JSONRPCResultResponse" : "JSONRPCResponse", message)
  const [document, definition] = definitionOfResult(revision, method, message.result)
  if (definition === undefined) throw new Error(`${method} is not one that these tests know`)
  if (revision < "2026-07-28" || message.result.resultType !== "input_required") {
    return accept(document, definition, message.result)
  }
  accept(revision, "InputRequiredResult", message.result)
  for (const request of Object.values<Json>(message.result.inputRequests ?? {})) named(revision, request)
}

const methods = new Map<Revision.Revision, ReadonlyMap<string, string>>()

/** The definitions of requests and notifications by method. */
const definitionOf = (revision: Revision.Revision, method: string): string | undefined => {
  let known = methods.get(revision)
  if (known === undefined) {
    const { definitions } = Spec.load(revision)
    known = new Map(
      Object.entries(definitions).flatMap(([name, { properties }]) => {
        const method = properties?.["method"]?.const
        return typeof method === "string" ? [[method, name] as const] : []
      })
    )
    methods.set(revision, known)
  }
  return known.get(method)
}

const named = (revision: Revision.Revision, message: Json): void => {
  if (!Spec.present) return
  const definition = definitionOf(revision, message.method)
  if (definition === undefined) throw new Error(`${revision}: there is no ${message.method}`)
  accept(revision, definition, message)
}

/** Notifications that exist only in tests. */
const ours = "notifications/test"

/** Throws the faults of a request or a notification of a server by the official schema. */
export const serverMessage = (revision: Revision.Revision, message: Json): void => {
  if (message.id === undefined) {
    accept(revision, "JSONRPCNotification", message)
    if (message.method === ours) return
    // "Servers MUST NOT send notifications/cancelled for any other purpose" than to end a subscription, which has a result here.
    if (message.method === "notifications/cancelled" && Revision.era(revision) === "stateless") {
      throw new Error(`A cancellation: ${JSON.stringify(message)}`)
    }
    if (message.method === "notifications/tasks" && Revision.era(revision) === "stateless") {
      return accept("tasks", "TaskStatusNotification", message)
    }
    accept(revision, "ServerNotification", message)
  } else {
    // "Servers MUST NOT initiate JSON-RPC requests" (2026-07-28, message patterns).
    if (Revision.era(revision) === "stateless") throw new Error(`A request of the server: ${JSON.stringify(message)}`)
    accept(revision, "JSONRPCRequest", message)
    accept(revision, "ServerRequest", message)
  }
  named(revision, message)
}

/** "Servers SHOULD include the following field in every result's `_meta`" (2026-07-28, basic). */
const signed = ({ _meta }: Json): void => {
  const server = _meta?.["io.modelcontextprotocol/serverInfo"]
  if (server === undefined) throw new Error("The result does not say who answers")
  accept("2026-07-28", "Implementation", server)
}

/** The requests that a client has sent in one revision, and their responses. */
export class Talk {
  revision: Revision.Revision
  readonly #asked = new Map<JsonRpc.Id, string>()

  constructor(revision: Revision.Revision) {
    this.revision = revision
  }

  /** Records the client's message or batch. */
  ask(body: Json): void {
    if (Array.isArray(body)) return body.forEach((member) => this.ask(member))
    const asks = body?.id !== undefined && !("result" in body) && !("error" in body)
    if (asks) this.#asked.set(body.id, String(body.method))
  }

  /** Throws the faults of the server's message or batch. */
  receive(message: Json): void {
    if (Array.isArray(message)) return message.forEach((member) => this.receive(member))
    if (message?.method !== undefined) return serverMessage(this.revision, message)
    const method = this.#asked.get(message.id)
    // "Error responses MUST include the same ID as the request (except where the ID could not be read)".
    if (method === undefined && (message.error === undefined || message.id !== undefined)) {
      throw new Error(`Nobody asked that: ${JSON.stringify(message)}`)
    }
    if (method === "initialize" && Revision.is(message.result?.protocolVersion)) {
      this.revision = message.result.protocolVersion
    }
    answer(this.revision, method ?? "", message)
    if (this.revision >= "2026-07-28" && message.result !== undefined) signed(message.result)
  }
}
