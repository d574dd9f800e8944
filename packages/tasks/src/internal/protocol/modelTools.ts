/** The tools of `TaskTools`. */
import type { CallToolResult } from "@skein/protocol/CallTool"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import * as SchemaValidation from "@skein/protocol/SchemaValidation"
import { McpRequest, type RequestContext } from "@skein/runtime/RequestContext"
import type { Catalog } from "@skein/server/Catalog"
import * as Content from "@skein/server/Content"
import type { DefinitionError } from "@skein/server/DefinitionError"
import * as Tool from "@skein/server/Tool"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { isFinal, type Question, type State } from "../../TaskState.ts"
import { type Face, type ModelTools, told } from "./taskService.ts"
import { page } from "./pages.ts"
import { data, describe, isForm } from "./status.ts"
import * as wire from "./wire.ts"

/** What a model has done wrong, in words that help it to do it right. */
class Mistake extends Data.TaggedError("Mistake")<{ readonly message: string }> {}

const mistake = (message: string): Effect.Effect<never, Mistake> => Effect.fail(new Mistake({ message }))

const taskId = Schema.String.annotate({ description: "The id of the task, as the call that began it gave it" })
const text = (description: string) => Schema.optionalKey(Schema.String.annotate({ description }))
const object = Schema.Record(Schema.String, Schema.Unknown)

const standing = {
  taskId: Schema.String,
  tool: Schema.String,
  status: Schema.Literals(["working", "input_required", "completed", "failed", "cancelled"]),
  message: text("Where it stands, or what went wrong"),
  progress: Schema.optionalKey(Schema.Struct({
    progress: Schema.Finite,
    total: Schema.optionalKey(Schema.Finite),
    message: Schema.optionalKey(Schema.String)
  })),
  createdAt: Schema.String,
  lastUpdatedAt: Schema.String,
  expiresAt: Schema.NullOr(Schema.String).annotate({ description: "When the task is forgotten; null: never" })
}

const whole = {
  ...standing,
  questions: Schema.Array(Schema.Struct({
    question: Schema.String.annotate({ description: "The key of the question, for task_answer" }),
    message: Schema.String,
    answerable: Schema.Boolean.annotate({ description: "Whether task_answer can answer it" }),
    schema: Schema.optionalKey(object.annotate({ description: "The JSON Schema of the content" }))
  })),
  result: Schema.optionalKey(object.annotate({ description: "What the tool answered, once the task is over" })),
  error: Schema.optionalKey(Schema.Struct({
    code: Schema.Int,
    message: Schema.String,
    data: Schema.optionalKey(Schema.Unknown)
  }))
}

/** Milliseconds that a look at a task may wait, however long calls do. */
const longest = 3_600_000

const idempotent = { destructiveHint: false, idempotentHint: true, openWorldHint: false }

/** The tools, for whom they are offered. The tasks are there when the first of them is called. */
export const layer = (
  faceNow: () => Face,
  { offered, maxWait }: ModelTools
): Layer.Layer<never, DefinitionError, Catalog> => {
  const seconds = Math.floor(Math.max(0, Math.min(maxWait, longest)) / 1000)

  const status = Tool.make("task_status", {
    title: "Look at a task",
    description:
      "Tells where a long-running task stands, and gives its result once it is over. It waits a while for that, or " +
      "for a question, so call it again until the task is over. If the task asks something, ask the user and use task_answer.",
    input: {
      taskId,
      waitSeconds: Schema.optionalKey(
        Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: seconds })).annotate({
          description:
            `How long to wait for the end of the task or a question: ${seconds} seconds if absent, 0 for not at all`
        })
      )
    },
    output: whole,
    annotations: { readOnlyHint: true, idempotentHint: true, openWorldHint: false },
    visible: offered
  })

  const answer = Tool.make("task_answer", {
    title: "Answer a question of a task",
    description:
      "Answers a question that a long-running task asks. The answer is the user's: ask them first, and never make " +
      "one up. The first answer to a question counts.",
    input: {
      taskId,
      question: text("The key of the question; not needed where there is only one"),
      action: Schema.optionalKey(
        Schema.Literals(["accept", "decline", "cancel"]).annotate({
          description: "What the user did: agreed and answered (the default), said no, or dismissed the question"
        })
      ),
      content: Schema.optionalKey(
        object.annotate({ description: "With accept: the answer, by the JSON Schema of the question" })
      )
    },
    output: whole,
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
    visible: offered
  })

  const cancel = Tool.make("task_cancel", {
    title: "End a task",
    description: "Ends a long-running task that is not over yet. What it has done so far may be undone, or not.",
    input: { taskId },
    output: whole,
    annotations: { ...idempotent, readOnlyHint: false, destructiveHint: true },
    visible: offered
  })

  const list = Tool.make("task_list", {
    title: "List tasks",
    description: "Lists the long-running tasks of the user, newest first, over or not.",
    input: { cursor: text("The nextCursor of the page before") },
    output: { tasks: Schema.Array(Schema.Struct(standing)), nextCursor: Schema.optionalKey(Schema.String) },
    annotations: { ...idempotent, readOnlyHint: true },
    visible: (caller) => offered(caller) && faceNow().owners(caller).length > 0
  })

  return Layer.mergeAll(
    Tool.layer(
      status,
      ({ taskId, waitSeconds = seconds }) =>
        found(faceNow, taskId, (face, state, exchange) =>
          isFinal(state) || waitSeconds === 0
            ? Effect.succeed(shown(state))
            : Effect.map(changed(face, state, waitSeconds, exchange), shown))
    ),
    Tool.layer(
      answer,
      ({ taskId, ...given }) => found(faceNow, taskId, (face, state) => answering(face, state, given))
    ),
    Tool.layer(cancel, ({ taskId }) =>
      found(faceNow, taskId, (face, state, { caller }) =>
        isFinal(state)
          ? Effect.succeed(shown(state))
          : Effect.andThen(
            told(face.engine.cancel(state.id, "The task was cancelled by request of the model")),
            Effect.map(face.find(state.id, caller), shown)
          ))),
    Tool.layer(
      list,
      ({ cursor }) =>
        Effect.flatMap(
          McpRequest,
          ({ caller }) =>
            Effect.map(
              forModel(page(faceNow(), caller, faceNow().owners(caller), cursor)),
              ({ nextCursor, tasks }) => ({
                tasks: tasks.map(brief),
                ...(nextCursor === undefined ? undefined : { nextCursor })
              })
            )
        )
    )
  )
}

/** What is an invalid parameter of a method is a mistake of the model's here: it is told in a result, which the model reads. */
const forModel = <A, R>(
  effect: Effect.Effect<A, McpError.McpError | Mistake, R>
): Effect.Effect<A, McpError.McpError | Mistake, R> =>
  Effect.catch(
    effect,
    (error) =>
      McpError.isMcpError(error) && error.reason === "InvalidParams" ? mistake(error.message) : Effect.fail(error)
  )

const found = <A>(
  faceNow: () => Face,
  taskId: string,
  use: (face: Face, state: State, exchange: RequestContext) => Effect.Effect<A, McpError.McpError | Mistake>
): Effect.Effect<A, McpError.McpError | Mistake, McpRequest> =>
  forModel(
    Effect.flatMap(McpRequest, (exchange) =>
      Effect.flatMap(faceNow().find(taskId, exchange.caller), (state) => use(faceNow(), state, exchange)))
  )

/** A task, in words and as data; the content of its result comes along. */
const shown = (state: State): Tool.Result<ReturnType<typeof data>> => {
  const { outcome } = state
  const content = outcome?._tag === "Result" ? (outcome.result as unknown as CallToolResult).content : []
  return Tool.result({ structured: data(state), content: [Content.text(describe(state)), ...content] })
}

/** A task in a list. */
const brief = (state: State) => {
  const { error: _, questions: __, result: ___, ...rest } = data(state)
  return rest
}

/** The task when it is over, asks something, or the time is. Progress is told meanwhile. */
const changed = (
  face: Face,
  state: State,
  seconds: number,
  exchange: RequestContext
): Effect.Effect<State, McpError.McpError> =>
  Effect.andThen(
    Effect.timeoutOption(
      told(
        face.engine.watch(state.id).pipe(
          Stream.tap(({ progress }) => progress === undefined ? Effect.void : exchange.progress(progress)),
          Stream.takeUntil((state) => isFinal(state) || state.questions.length > 0),
          Stream.runDrain
        )
      ),
      seconds * 1000
    ),
    face.find(state.id, exchange.caller)
  )

interface Given {
  readonly question?: string | undefined
  readonly action?: "accept" | "decline" | "cancel" | undefined
  readonly content?: JsonObject | undefined
}

/** Which of the open questions is meant. */
const meant = ({ questions }: State, key: string | undefined): Effect.Effect<Question, Mistake> => {
  if (questions.length === 0) return mistake("The task asks nothing now")
  const question = key === undefined && questions.length === 1
    ? questions[0]
    : questions.find((each) => each.key === key)
  if (question !== undefined) return Effect.succeed(question)
  const keys = questions.map(({ key }) => JSON.stringify(key)).join(", ")
  return mistake(`Say which question is answered, of those that are open: ${keys}`)
}

/** What is wrong with an answer. The task would fail by it, or ask anew: the model is told before. */
const problemOf = ({ params }: Question, { action = "accept", content }: Given): string | undefined => {
  if (action !== "accept") return undefined
  const compiled = SchemaValidation.compile(params?.["requestedSchema"])
  if (Result.isFailure(compiled)) return undefined
  const [problem] = compiled.success.problems(content ?? {})
  return problem === undefined ? undefined : `${["content", ...problem.path].join(".")}: ${problem.message}`
}

const answering = (
  face: Face,
  state: State,
  given: Given
): Effect.Effect<ReturnType<typeof shown>, McpError.McpError | Mistake> =>
  Effect.flatMap(meant(state, given.question), (question): ReturnType<typeof answering> => {
    if (!isForm(question)) return mistake(`A tool cannot answer ${question.method}: the client has to`)
    const problem = problemOf(question, given)
    if (problem !== undefined) return mistake(`The content does not fit the question. ${problem}`)
    const { action = "accept", content } = given
    const said = action === "accept" ? { action, content: content ?? {} } : { action }
    const answer = wire.answer(state, question, state.caller.revision, said)
    if (Result.isFailure(answer)) return mistake(`The answer cannot be given. ${answer.failure}`)
    return Effect.flatMap(
      told(face.engine.answer(state.id, question.key, answer.success)),
      (first): ReturnType<typeof answering> =>
        first
          ? Effect.map(told(face.engine.get(state.id)), (now) => shown(now ?? state))
          : mistake("The question is not open any more")
    )
  })
