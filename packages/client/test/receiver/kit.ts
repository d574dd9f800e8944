/** What the tests of tasks that a client receives share: a host that takes its time, and a server that asks and looks. */
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as TestClock from "effect/testing/TestClock"
import type * as Client from "../../src/Client.ts"
import * as Elicitation from "../../src/Elicitation.ts"
import * as Sampling from "../../src/Sampling.ts"
import * as answers from "../answers/kit.ts"
import type * as ScriptedServer from "@skein/testing/ScriptedServer"

export type Json = any
export { said, turns } from "../answers/kit.ts"
// Loaded before, so that no test waits for the file.
export { make as loaded } from "../../src/internal/receiving/tasks.ts"

export const revision = "2025-11-25"
export const related = "io.modelcontextprotocol/related-task"
export const sampling = "sampling/createMessage"
export const elicitation = "elicitation/create"

/** Lets a time pass, and everything that it wakes. */
export const pass = (time: Parameters<typeof TestClock.adjust>[0]) =>
  Effect.andThen(TestClock.adjust(time), answers.turns())

/** A user who answers when told to, and a model that does. */
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

  /** The user fills in the form that came as that one. */
  fillIn(index = 0, answer: Elicitation.FormAnswer = Elicitation.accept({ name: "Ada" })) {
    return Effect.andThen(Deferred.succeed(this.forms[index]!, answer), answers.turns())
  }

  /** The model says something. */
  say(index: number, answer: Effect.Effect<Sampling.Answer, Sampling.SamplingRefused>) {
    return Effect.andThen(Deferred.complete(this.messages[index]!, answer), answers.turns())
  }
}

export const form = {
  mode: "form",
  message: "Who?",
  requestedSchema: { type: "object", properties: { name: { type: "string" } }, required: ["name"] }
}
export const message = { messages: [{ role: "user", content: { type: "text", text: "Hi" } }], maxTokens: 10 }

/** A server that asks, and the client of its host. */
export class Asking {
  readonly client: Client.Client
  readonly server: ScriptedServer.ScriptedServer
  #asked = 0

  constructor(server: ScriptedServer.ScriptedServer, client: Client.Client) {
    this.server = server
    this.client = client
  }

  /** Sends a request, and gives what it is answered with; `undefined` where it is not. */
  ask(method: string, params?: Json, id = `asked-${this.#asked++}`): Effect.Effect<Json> {
    return answers.ask(this.server, method, params, id)
  }

  /** Asks the user as a task, and gives the task. */
  form(task: Json = {}): Effect.Effect<Json> {
    return Effect.map(this.ask(elicitation, { ...form, task }), ({ result }) => result.task)
  }

  /** Asks the model as a task, and gives the task. */
  message(task: Json = {}): Effect.Effect<Json> {
    return Effect.map(this.ask(sampling, { ...message, task }), ({ result }) => result.task)
  }

  get(taskId: string): Effect.Effect<Json> {
    return Effect.map(this.ask("tasks/get", { taskId }), ({ error, result }) => result ?? error)
  }

  /** The answer to the request with an id, if it has come. */
  answerTo(id: JsonRpc.Id): Json {
    return this.server.received.find((message: Json) => message.id === id && !("method" in message))
  }

  /** What the client said about tasks unasked. */
  get told(): ReadonlyArray<Json> {
    return this.server.received.flatMap((message) =>
      message._tag === "Notification" && message.method === "notifications/tasks/status" ? [message.params] : []
    )
  }
}

/** Opens a client of a server that asks. */
export const open = <A>(
  host: Layer.Layer<A>,
  options?: Client.Options,
  of: Parameters<typeof answers.open>[0] = revision,
  script?: ScriptedServer.Script
) => Effect.map(answers.open(of, host, script, options), ({ client, server }) => new Asking(server, client))
