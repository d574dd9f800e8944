/**
 * The tools of `TaskTools`, with which models read, answer, cancel and list tasks.
 */
import type { CallToolResult } from "@skein/protocol/CallTool"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import * as PrintableError from "@skein/protocol/PrintableError"
import * as SchemaValidation from "@skein/protocol/SchemaValidation"
import { type Caller, McpRequest, type RequestContext } from "@skein/runtime/RequestContext"
import type { Catalog } from "@skein/server/Catalog"
import * as Content from "@skein/server/Content"
import type { DefinitionError } from "@skein/server/DefinitionError"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { isFinal, type Question, type State } from "../../TaskState.ts"
import { type ModelTools, taskNotFound, type TaskService, withMcpErrors } from "./taskService.ts"
import { taskPage } from "./taskPage.ts"
import { describeTask, isForm, questionData, taskData } from "./taskDescription.ts"
import * as wire from "./wire.ts"

/** An invalid call of a model. The message describes how the model can correct it. */
class ModelMistake extends PrintableError.tagged("Mistake") {}

/** The effect of a call of a model. */
type Called<A, R = never> = Effect.Effect<A, McpError.McpError | ModelMistake, R>

const mistake = (message: string): Effect.Effect<never, ModelMistake> => Effect.fail(new ModelMistake({ message }))

const taskId = Schema.String.annotate({ description: "The task id, from the result of the call that started the task" })
const text = (description: string) => Schema.optionalKey(Schema.String.annotate({ description }))
const object = Schema.Record(Schema.String, Schema.Unknown)

const statusFields = {
  taskId: Schema.String,
  tool: Schema.String,
  status: Schema.Literals(["working", "input_required", "completed", "failed", "cancelled"]),
  message: text("The status message, or the reason for a failure"),
  progress: Schema.optionalKey(Schema.Struct({
    progress: Schema.Finite,
    total: Schema.optionalKey(Schema.Finite),
    message: Schema.optionalKey(Schema.String)
  })),
  createdAt: Schema.String,
  lastUpdatedAt: Schema.String,
  expiresAt: Schema.NullOr(Schema.String).annotate({ description: "When the task is deleted; null: never" })
}

const questionFields = {
  question: Schema.String.annotate({ description: "The key of the question, for task_answer" }),
  message: Schema.String,
  answerable: Schema.Boolean.annotate({ description: "Whether task_answer can answer it" }),
  schema: Schema.optionalKey(object.annotate({ description: "The JSON Schema of the content" }))
}

const taskFields = {
  ...statusFields,
  questions: Schema.Array(Schema.Struct(questionFields)),
  result: Schema.optionalKey(object.annotate({ description: "The result of the tool, after the task has ended" })),
  error: Schema.optionalKey(Schema.Struct({
    code: Schema.Int,
    message: Schema.String,
    data: Schema.optionalKey(Schema.Unknown)
  }))
}

/** Milliseconds that `task_status` may wait, however great `waitTimeout` is. */
const maxWaitMs = 3_600_000

const idempotent = { destructiveHint: false, idempotentHint: true, openWorldHint: false }

/** The tools for the callers that see them. `tasksNow` is called once a tool is called: by then the service exists. */
export const layer = (
  tasksNow: () => TaskService["Service"],
  { visible, waitTimeout }: ModelTools
): Layer.Layer<never, DefinitionError, Catalog> => {
  const seconds = Math.floor(Math.max(0, Math.min(waitTimeout, maxWaitMs)) / 1000)

  const status = Tool.make("task_status", {
    title: "Read a task",
    description:
      "Returns the status of a long-running task, and its result after it has ended. It waits for the end of the task or " +
      "a question, so call it again until the task has ended. If the task asks a question, ask the user and call task_answer.",
    input: {
      taskId,
      waitSeconds: Schema.optionalKey(
        Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: seconds })).annotate({
          description:
            `How many seconds to wait for the end of the task or a question. Default ${seconds}; 0 does not wait`
        })
      )
    },
    output: taskFields,
    annotations: { readOnlyHint: true, idempotentHint: true, openWorldHint: false },
    visible
  })

  const answer = Tool.make("task_answer", {
    title: "Answer a question of a task",
    description:
      "Answers a question of a long-running task with the answer of the user. Ask the user first, and never invent an " +
      "answer. Only the first answer to a question counts.",
    input: {
      taskId,
      question: text("The key of the question; not needed if the task has only one"),
      action: Schema.optionalKey(
        Schema.Literals(["accept", "decline", "cancel"]).annotate({
          description:
            "What the user did: answered (accept, the default), refused (decline) or dismissed the question (cancel)"
        })
      ),
      content: Schema.optionalKey(
        object.annotate({ description: "With accept: the answer, valid against the JSON Schema of the question" })
      )
    },
    output: taskFields,
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
    visible
  })

  const questions = Tool.make("task_questions", {
    title: "List questions for the user",
    description:
      "Lists the open questions of long-running tasks, also of others, that name the user: approvals for instance. Ask the " +
      "user, never invent an answer, and call task_answer.",
    input: {},
    output: {
      questions: Schema.Array(Schema.Struct({ taskId: Schema.String, tool: Schema.String, ...questionFields }))
    },
    annotations: { ...idempotent, readOnlyHint: true },
    visible: (caller) => visible(caller) && tasksNow().settings.addresses(caller).length > 0
  })

  const cancel = Tool.make("task_cancel", {
    title: "Cancel a task",
    description: "Cancels a long-running task that has not ended. The task may or may not undo its effects so far.",
    input: { taskId },
    output: taskFields,
    annotations: { ...idempotent, readOnlyHint: false, destructiveHint: true },
    visible
  })

  const list = Tool.make("task_list", {
    title: "List tasks",
    description: "Lists the long-running tasks of the user, newest first, including tasks that have ended.",
    input: { cursor: text("The nextCursor of the previous page") },
    output: { tasks: Schema.Array(Schema.Struct(statusFields)), nextCursor: Schema.optionalKey(Schema.String) },
    annotations: { ...idempotent, readOnlyHint: true },
    visible: (caller) => visible(caller) && tasksNow().ownersOf(caller).length > 0
  })

  return Layer.mergeAll(
    Tool.layer(
      status,
      ({ taskId, waitSeconds = seconds }) =>
        withTask(tasksNow, taskId, (tasks, state, request) =>
          isFinal(state) || waitSeconds === 0
            ? Effect.succeed(taskResult(state))
            : Effect.map(waitForChange(tasks, state, waitSeconds, request), taskResult))
    ),
    Tool.layer(
      answer,
      ({ taskId, ...given }) =>
        forModel(
          Effect.flatMap(McpRequest, ({ caller }) =>
            Effect.flatMap(findAnswerable(tasksNow(), taskId, caller), (state) =>
              submitAnswer(tasksNow(), state, given, caller)))
        )
    ),
    Tool.layer(cancel, ({ taskId }) =>
      withTask(tasksNow, taskId, (tasks, state, { caller }) =>
        isFinal(state)
          ? Effect.succeed(taskResult(state))
          : Effect.andThen(
            withMcpErrors(tasks.engine.cancel(state.id, "The model cancelled the task")),
            Effect.map(tasks.find(state.id, caller), taskResult)
          ))),
    Tool.layer(
      list,
      ({ cursor }) =>
        Effect.flatMap(
          McpRequest,
          ({ caller }) =>
            Effect.map(
              forModel(taskPage(tasksNow(), caller, tasksNow().ownersOf(caller), cursor)),
              ({ nextCursor, tasks }) => ({
                tasks: tasks.map(listEntry),
                ...(nextCursor === undefined ? undefined : { nextCursor })
              })
            )
        )
    ),
    Tool.layer(questions, () =>
      Effect.flatMap(McpRequest, ({ caller }) =>
        Effect.map(
          withMcpErrors(tasksNow().engine.questionsFor(tasksNow().settings.addresses(caller))),
          (found) => ({
            questions: found.map(({ question, task: { id, tool } }) => ({
              taskId: id,
              tool,
              ...questionData(question)
            }))
          })
        )))
  )
}

/** Converts `InvalidParams` errors to results with `isError`: a model reads results, but no errors. */
const forModel = <A, R>(effect: Called<A, R>): Called<A, R> =>
  Effect.catch(
    effect,
    (error) =>
      McpError.isMcpError(error) && error.reason === "InvalidParams" ? mistake(error.message) : Effect.fail(error)
  )

const withTask = <A>(
  tasksNow: () => TaskService["Service"],
  taskId: string,
  use: (tasks: TaskService["Service"], state: State, request: RequestContext) => Called<A>
): Called<A, McpRequest> =>
  forModel(
    Effect.flatMap(McpRequest, (request) =>
      Effect.flatMap(tasksNow().find(taskId, request.caller), (state) => use(tasksNow(), state, request)))
  )

/** A task as a text and as structured content, with the content of its result. */
const taskResult = (state: State): Tool.Result<ReturnType<typeof taskData>> => {
  const { outcome } = state
  const content = outcome?._tag === "Result" ? (outcome.result as unknown as CallToolResult).content : []
  return Tool.result({ structured: taskData(state), content: [Content.text(describeTask(state)), ...content] })
}

/** A task in a listing. */
const listEntry = (state: State) => {
  const { error: _, questions: __, result: ___, ...rest } = taskData(state)
  return rest
}

/** Waits until the task has ended or asks a question, or the time is over, and reports progress meanwhile. */
const waitForChange = (
  tasks: TaskService["Service"],
  state: State,
  seconds: number,
  request: RequestContext
): Effect.Effect<State, McpError.McpError> =>
  Effect.andThen(
    Effect.timeoutOption(
      withMcpErrors(
        tasks.watch(state.id, request.caller).pipe(
          Stream.tap(({ progress }) => progress === undefined ? Effect.void : request.progress(progress)),
          Stream.takeUntil((state) => isFinal(state) || state.questions.length > 0),
          Stream.runDrain
        )
      ),
      seconds * 1000
    ),
    tasks.find(state.id, request.caller)
  )

/**
 * A task that the caller may see, or one of others with a question for it, of which it sees only its questions. Any other id has
 * the error of an unknown one.
 */
const findAnswerable = (
  tasks: TaskService["Service"],
  taskId: string,
  caller: Caller
): Effect.Effect<State, McpError.McpError> =>
  Effect.flatMap(withMcpErrors(tasks.engine.get(taskId)), (state) => {
    if (state === undefined) return taskNotFound
    if (tasks.canSee(caller, state)) return Effect.succeed(tasks.viewOf(state, caller))
    const questions = state.questions.filter((question) =>
      question.to !== undefined && tasks.mayAnswer(caller, question)
    )
    return questions.length === 0
      ? taskNotFound
      : Effect.succeed({ ...state, statusMessage: undefined, progress: undefined, outcome: undefined, questions })
  })

interface GivenAnswer {
  readonly question?: string | undefined
  readonly action?: "accept" | "decline" | "cancel" | undefined
  readonly content?: JsonObject | undefined
}

/** The open question that an answer names. */
const findQuestion = ({ questions }: State, key: string | undefined): Effect.Effect<Question, ModelMistake> => {
  if (questions.length === 0) return mistake("The task has no open question")
  const question = key === undefined && questions.length === 1
    ? questions[0]
    : questions.find((each) => each.key === key)
  if (question !== undefined) return Effect.succeed(question)
  const keys = questions.map(({ key }) => JSON.stringify(key)).join(", ")
  return mistake(`Set question to the key of an open question: ${keys}`)
}

/** The problem of an invalid answer, which would fail the task or make it ask again: the model receives it first. */
const contentProblem = ({ params }: Question, { action = "accept", content }: GivenAnswer): string | undefined => {
  if (action !== "accept") return undefined
  const compiled = SchemaValidation.compile(params?.["requestedSchema"])
  if (Result.isFailure(compiled)) return undefined
  const [problem] = compiled.success.problems(content ?? {})
  return problem === undefined ? undefined : `${["content", ...problem.path].join(".")}: ${problem.message}`
}

const submitAnswer = (
  tasks: TaskService["Service"],
  state: State,
  given: GivenAnswer,
  caller: Caller
): Called<ReturnType<typeof taskResult>> =>
  Effect.flatMap(findQuestion(state, given.question), (question): ReturnType<typeof submitAnswer> => {
    if (!isForm(question)) return mistake(`task_answer cannot answer ${question.method}: only the client can`)
    const problem = contentProblem(question, given)
    if (problem !== undefined) {
      return mistake(`The content is not valid against the JSON Schema of the question. ${problem}`)
    }
    const { action = "accept", content } = given
    const response = action === "accept" ? { action, content: content ?? {} } : { action }
    const answer = wire.toStoredAnswer(state, question, state.caller.revision, response)
    if (Result.isFailure(answer)) return mistake(`The answer is invalid. ${answer.failure}`)
    return Effect.flatMap(
      withMcpErrors(tasks.engine.answer(state.id, question.key, answer.success)),
      (accepted): ReturnType<typeof submitAnswer> =>
        accepted
          // A caller that does not own the task does not see what becomes of it.
          ? Effect.match(tasks.find(state.id, caller), {
            onFailure: () => taskResult({ ...state, questions: state.questions.filter((each) => each !== question) }),
            onSuccess: taskResult
          })
          : mistake("The question is no longer open")
    )
  })
