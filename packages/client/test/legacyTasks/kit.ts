/** A host whose responses the test controls, and a server that sends requests as tasks. */
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as TestClock from "effect/testing/TestClock"
import type * as Client from "../../src/Client.ts"
import * as Elicitation from "../../src/Elicitation.ts"
import * as Sampling from "../../src/Sampling.ts"
import * as answers from "../input/kit.ts"
import type * as ScriptedServer from "@skein/testing/ScriptedServer"

export type Json = any
export { textAnswer, turns } from "../input/kit.ts"
// Loads the module before the tests, so that no test waits for the import.
export { make as loaded } from "../../src/internal/input/legacyTasks/tasks.ts"

export const revision = "2025-11-25"
export const related = "io.modelcontextprotocol/related-task"
export const sampling = "sampling/createMessage"
export const elicitation = "elicitation/create"

/** Advances the test clock and lets pending messages arrive. */
export const pass = (time: Parameters<typeof TestClock.adjust>[0]) =>
  Effect.andThen(TestClock.adjust(time), answers.turns())

/** A user and a model that respond when the test instructs them to. */
export class Host {
  readonly forms: Array<Deferred.Deferred<Elicitation.FormAnswer>> = []
  readonly messages: Array<Deferred.Deferred<Sampling.Answer, Sampling.SamplingRefused>> = []
  interrupted = 0
  readonly #left = Effect.sync(() => {
    this.interrupted++
  })

  readonly elicitation = Elicitation.layer({
    form: () =>
      Effect.suspend(() => {
        const answer = Deferred.makeUnsafe<Elicitation.FormAnswer>()
        this.forms.push(answer)
        return Effect.onInterrupt(Deferred.await(answer), () => this.#left)
      })
  })

  readonly sampling = Sampling.layer(() =>
    Effect.suspend(() => {
      const answer = Deferred.makeUnsafe<Sampling.Answer, Sampling.SamplingRefused>()
      this.messages.push(answer)
      return Effect.onInterrupt(Deferred.await(answer), () => this.#left)
    })
  )

  get layer() {
    return Layer.mergeAll(this.elicitation, this.sampling)
  }

  /** Completes the form with that index. */
  fillIn(index = 0, answer: Elicitation.FormAnswer = Elicitation.accept({ name: "Ada" })) {
    return Effect.andThen(Deferred.succeed(this.forms[index]!, answer), answers.turns())
  }

  /** Completes the sampling request with that index. */
  complete(index: number, answer: Effect.Effect<Sampling.Answer, Sampling.SamplingRefused>) {
    return Effect.andThen(Deferred.complete(this.messages[index]!, answer), answers.turns())
  }
}

export const form = {
  mode: "form",
  message: "Who?",
  requestedSchema: { type: "object", properties: { name: { type: "string" } }, required: ["name"] }
}
export const message = { messages: [{ role: "user", content: { type: "text", text: "Hi" } }], maxTokens: 10 }

/** A server that sends requests, and its client. */
export class RequestingServer {
  readonly client: Client.Client
  readonly server: ScriptedServer.ScriptedServer
  #asked = 0

  constructor(server: ScriptedServer.ScriptedServer, client: Client.Client) {
    this.server = server
    this.client = client
  }

  /** Sends a request and returns the response, or `undefined` without a response. */
  ask(method: string, params?: Json, id = `asked-${this.#asked++}`): Effect.Effect<Json> {
    return answers.ask(this.server, method, params, id)
  }

  /** Sends an elicitation as a task and returns the task. */
  form(task: Json = {}): Effect.Effect<Json> {
    return Effect.map(this.ask(elicitation, { ...form, task }), ({ result }) => result.task)
  }

  /** Sends a sampling request as a task and returns the task. */
  message(task: Json = {}): Effect.Effect<Json> {
    return Effect.map(this.ask(sampling, { ...message, task }), ({ result }) => result.task)
  }

  get(taskId: string): Effect.Effect<Json> {
    return Effect.map(this.ask("tasks/get", { taskId }), ({ error, result }) => result ?? error)
  }

  /** The response to the request with that id, if it has arrived. */
  answerTo(id: JsonRpc.Id): Json {
    return this.server.responses.find((response) => response.id === id)
  }

  /** The params of the status notifications that the client sent. */
  get statusNotifications(): ReadonlyArray<Json> {
    return this.server.notifications("notifications/tasks/status").map(({ params }) => params)
  }
}

/** Opens a client of a server that sends requests. */
export const open = <A>(
  host: Layer.Layer<A>,
  options?: Client.Options,
  of: Parameters<typeof answers.open>[0] = revision,
  script?: ScriptedServer.Script
) => Effect.map(answers.open(of, host, script, options), ({ client, server }) => new RequestingServer(server, client))
