/**
 * From a method and its params to its result: what may be asked, how it is written, and how the answer is read.
 */
import type { CallToolRequestParams, CallToolResult } from "@skein/protocol/CallTool"
import * as Codec from "@skein/protocol/Codec"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as Method from "@skein/protocol/Method"
import * as Revision from "@skein/protocol/Revision"
import type { ListToolsResult } from "@skein/protocol/Tool"
import type { CallOptions } from "@skein/runtime/RequestContext"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import type { Change } from "../../Changes.ts"
import { ClientError, Closed, InvalidResponse, LimitExceeded, Timeout, Unsupported } from "../../ClientError.ts"
import type { InputRequestHandler } from "../input/inputRequests.ts"
import { type CallTime, timeLeft } from "./deadline.ts"
import type { Cached, Got } from "../cache/cache.ts"
import type { Definitions } from "./toolCatalog.ts"
import { withSafeIcons } from "./icons.ts"
import type { Keeper } from "../connection/supervisor.ts"
import type { Line } from "../connection/connection.ts"
import { checked, mirrored, type Relist } from "./paramHeaders.ts"
import { repair } from "./repair.ts"
import { replayed } from "./retry.ts"
import { endOf, serverErrorOf } from "../errors.ts"
import { fromRequest } from "./failure.ts"
import type { CallToolOptions, RequestOptions } from "./options.ts"
import { augmentation, mayAugment, saysTask, untilCreated, wantsTask } from "../legacyTasks/requestTask.ts"
import { Reports, type Tasked, type Tasks } from "../tasks/taskRegistry.ts"
import { traced } from "./trace.ts"

/** What every call of a client goes through. */
export interface Desk {
  readonly keeper: Keeper
  readonly enforceCapabilities: boolean
  /** How often one request may be answered with questions. */
  readonly maxRounds: number
  readonly answers: InputRequestHandler
  readonly definitions: Definitions
  readonly tasks: Tasks
  /** Sees a call through to its result that was answered with a task. */
  readonly finishTask: Tasked<CallToolResult>
  /** What the server tells of tasks, in the request era. */
  readonly watchTasks: (taskIds: ReadonlyArray<string>) => Stream.Stream<Change, ClientError>
  readonly cache: Cached
  /** Lists all tools once more, past the cache. */
  readonly relist: Relist
  /** What outlives the call that it was made for lives in it. */
  readonly scope: Scope.Scope
  /** Logs a warning. */
  readonly warn: (...message: ReadonlyArray<unknown>) => void
}

type AnyMethod = Pick<Method.AnyRequest, "name" | "from" | "since" | "until" | "capability">

const unsupported = (method: string, message: string, cause?: unknown): ClientError =>
  new ClientError({ reason: new Unsupported({ message, cause }), method })

const invalid = (method: string, message: string): ClientError =>
  new ClientError({ reason: new InvalidResponse({ message }), method })

/** Why nothing may be asked any more, if that is so. */
export const overFor = ({ closed }: Keeper, method: string): ClientError | undefined => {
  if (closed === undefined) return undefined
  const message = `${method} was not sent: ${closed.message}`
  return new ClientError({
    reason: new Closed({ message, end: endOf(closed) }),
    method,
    undelivered: closed.undelivered
  })
}

/** Why a method may not be called, if it may not. */
export const refusal = (
  desk: Pick<Desk, "enforceCapabilities">,
  { capabilities, revision }: Line,
  { name, from, since, until, capability }: AnyMethod
): ClientError | undefined => {
  if (from === "server" || !Revision.within(revision, since, until)) {
    return unsupported(name, `A client has no ${name} in ${revision}`)
  }
  if (!desk.enforceCapabilities || capability === undefined || capability.side === "client") return undefined
  if (Method.has(capabilities, capability, revision)) return undefined
  const message = `The server did not declare ${capability.path.join(".")}, which ${name} needs (enforceCapabilities)`
  return unsupported(name, message)
}

/** Reads an answer; of a listing that is not valid as a whole, the items that are. */
const decode = <R>(method: Method.RequestMethod<unknown, R>, desk: Desk, { revision }: Line, raw: JsonObject) => {
  const decoded = Codec.decodeAnswer(method, revision, raw)
  if (Result.isSuccess(decoded)) return decoded
  const repaired = repair(method.name, raw, revision)
  if (repaired === undefined) return decoded
  const again = Codec.decodeAnswer(method, revision, repaired.raw)
  if (Result.isSuccess(again)) desk.warn(`${method.name}: malformed items were left out`, repaired.dropped.slice(0, 8))
  return again
}

/** Sends one request on a line, and says in it which span it comes from. */
export const send = (
  line: Line,
  method: string,
  params: JsonObject,
  options: CallOptions
): Effect.Effect<JsonObject, ClientError> => {
  const { connection, peer, revision, telemetry } = line
  const answer = Effect.withFiber((fiber) =>
    Effect.mapError(
      peer.request(method, traced(fiber, line.stamp(params)), options),
      (error) => fromRequest(method, error)
    )
  )
  return telemetry === undefined
    ? answer
    : telemetry.around({ method, params, revision, http: connection.sendsHeaders === true }, answer)
}

/** Sends a call of a tool with the headers that mirror its arguments. */
const sendMirrored = (
  desk: Desk,
  line: Line,
  method: string,
  params: JsonObject,
  options: CallOptions,
  sentAt: number
) => {
  const { keeper } = desk
  const attempt = (time: CallTime | undefined) => {
    const headers = desk.definitions.headers(params)
    if (Result.isFailure(headers)) return Effect.fail(headers.failure)
    if (headers.success === undefined && time === undefined) return send(line, method, params, options)
    return send(line, method, params, { ...options, ...time, headers: headers.success })
  }
  const left = () => timeLeft(keeper.patience, options, keeper.now() - sentAt)
  return mirrored(desk.definitions, desk.relist, params["name"] as string, left, attempt)
}

/** What an answer that asks for input is answered with: the same request, with what the host says. */
interface Reply {
  readonly inputResponses?: unknown
  readonly requestState?: string | undefined
}

/** A call on its way: what it is, and what it takes to make it. */
interface Errand<P, R> {
  readonly desk: Desk
  readonly method: Method.RequestMethod<P, R>
  readonly options: CallToolOptions
  readonly repeatable: boolean
  /** When all of it has to be over, where the call says so by itself. */
  readonly deadline: number
  /** What becomes of it where it is answered with a task. */
  readonly tasked: Tasked<R> | undefined
}

/** An answer, and what was asked. */
interface Delivered {
  readonly line: Line
  readonly raw: JsonObject
  readonly startedAt: number
  /** Whether it was augmented with a task (2025-11-25), and the progress that it asked for then. */
  readonly augmented?: { readonly reports: Reports | undefined } | undefined
}

/** Writes a request and sends it on the line that is open; again on another one, where that does no harm. */
const deliver = <P, R>(errand: Errand<P, R>, params: P): Effect.Effect<Delivered, ClientError> => {
  const { desk, method, options, repeatable } = errand
  return replayed({ keeper: desk.keeper, repeatable }, method, options, (line, asked, startedAt) => {
    // It had to wait, or is made again, and may be for another server.
    const refused = asked === options ? undefined : refusal(desk, line, method)
    if (refused !== undefined) return Effect.fail(refused)
    const isCall = method.name === Method.CallTool.name
    const task = isCall && line.revision === "2025-11-25" && desk.tasks.enabled
      ? augmentation(desk.definitions, line, (params as CallToolRequestParams).name, options)
      : undefined
    if (task !== undefined) return sendAugmented(errand, line, { ...params, task }, asked, startedAt)
    const written = Codec.encodeParams(method, line.revision, params)
    if (Result.isFailure(written)) {
      const { message } = written.failure
      return Effect.fail(unsupported(method.name, `${method.name} cannot be sent: ${message}`, written.failure))
    }
    const mirrors = isCall && line.connection.sendsHeaders === true && line.modern
    const sent = mirrors
      ? sendMirrored(desk, line, method.name, written.success, asked, asked === options ? startedAt : desk.keeper.now())
      : send(line, method.name, written.success, asked)
    return Effect.map(sent, (raw) => ({ line, raw, startedAt }))
  })
}

/** Sends a call that is to become a task; what it asks to hear of its progress goes on when it was answered. */
const sendAugmented = <P, R>(
  { desk: { scope, tasks }, method, options: { onProgress, task } }: Errand<P, R>,
  line: Line,
  params: P,
  options: RequestOptions,
  startedAt: number
): Effect.Effect<Delivered, ClientError> =>
  Effect.suspend(() => {
    const written = Codec.encodeParams(method, line.revision, params)
    if (Result.isFailure(written)) return Effect.fail(unsupported(method.name, written.failure.message))
    const reports = onProgress === undefined ? undefined : new Reports(onProgress)
    const listening = reports === undefined ? undefined : {
      onProgress: reports.report,
      onSend: (token: number) => tasks.expect(line.peer, token, reports)
    }
    const { cancelTimeout } = tasks.settings
    const time = { timeout: cancelTimeout, maxTimeout: cancelTimeout }
    const cancel = (taskId: string) =>
      task?.leaveRunning === true ? Effect.void : Effect.ignore(send(line, "tasks/cancel", { taskId }, time))
    const sent = send(line, method.name, written.success, { ...options, ...listening })
    const ended = () =>
      new ClientError({
        reason: new Closed({ message: "The client ended before the call was answered" }),
        method: method.name
      })
    return untilCreated(sent, scope, cancelTimeout, cancel, ended).pipe(
      Effect.map((raw) => ({ line, raw, startedAt, augmented: { reports } })),
      Effect.onError(() => Effect.sync(() => tasks.dismiss(reports)))
    )
  })

/** Makes a call once more as a task, where the tool has to be called so and this side did not know. */
const augmentable: typeof deliver = (errand, params) => {
  const delivered = deliver(errand, params)
  const { desk: { definitions, keeper, relist, tasks }, method, options } = errand
  if (method.name !== Method.CallTool.name || !tasks.enabled || !mayAugment(keeper.last)) return delivered
  const { name } = params as CallToolRequestParams
  // A tool that was listed is known, and one that is not there is looked for once.
  if (definitions.taskSupport(name) !== undefined) return delivered
  const again = (otherwise: typeof delivered): typeof delivered => {
    if (definitions.taskSupport(name) !== undefined || !definitions.doubt(`task ${name}`)) return otherwise
    const { timeout } = timeLeft(keeper.patience, options, 0)
    return Effect.flatMap(
      Effect.timeoutOption(relist.run, timeout),
      () => definitions.taskSupport(name) === "required" ? deliver(errand, params) : otherwise
    )
  }
  return Effect.matchEffect(delivered, {
    onFailure: (refused) => wantsTask(refused) ? again(Effect.fail(refused)) : Effect.fail(refused),
    onSuccess: (answer) => saysTask(answer.raw) ? again(Effect.succeed(answer)) : Effect.succeed(answer)
  })
}

/**
 * Makes a call once more that was refused until the user has visited an address, when they have: clients "MAY wait for this
 * notification to automatically retry requests that received a URLElicitationRequiredError" (2025-11-25, elicitation).
 */
const attended: typeof deliver = (errand, params) => {
  const delivered = augmentable(errand, params)
  const { desk: { answers: { attend }, keeper }, method, options } = errand
  if (attend === undefined) return delivered
  return Effect.catch(delivered, (refused) => {
    const error = serverErrorOf(refused)
    if (error?.reason !== "UrlElicitationRequired" || keeper.last.revision !== "2025-11-25") return Effect.fail(refused)
    return attend(keeper.last, method.name, error, options).pipe(
      Effect.raceFirst(Effect.as(keeper.ended, false)),
      Effect.flatMap((complete) => complete ? delivered : Effect.fail(refused))
    )
  })
}

/** The call with what its last round has left of its time in all; nothing where it has left none. */
const remaining = <P, R>(errand: Errand<P, R>, startedAt: number): Errand<P, R> | undefined => {
  const { desk: { keeper }, options } = errand
  const { maxTimeout } = timeLeft(keeper.patience, options, keeper.now() - startedAt)
  return maxTimeout > 0 ? { ...errand, options: { ...options, maxTimeout } } : undefined
}

const round = <P, R>(errand: Errand<P, R>, params: P, rounds: number): Effect.Effect<Got<R>, ClientError> =>
  Effect.flatMap(attended(errand, params), ({ augmented, line, raw, startedAt }) => {
    const { desk, method } = errand
    const { name } = method
    const decoded = decode(method as Method.RequestMethod<unknown, R>, desk, line, raw)
    const isTask = Result.isSuccess(decoded) && decoded.success._tag === "LegacyTask"
    if (augmented !== undefined && !isTask) desk.tasks.dismiss(augmented.reports)
    if (Result.isFailure(decoded)) {
      return Effect.fail(invalid(name, `The answer to ${name} is not valid: ${decoded.failure}`))
    }
    const answer = decoded.success
    if (answer._tag === "Complete") {
      const got = { result: withSafeIcons(name, answer.result, desk.warn), keep: rounds === 0 && line.modern }
      const checking = name === Method.CallTool.name
        ? check(errand, line, params, answer.result, startedAt)
        : undefined
      return checking === undefined ? Effect.succeed(got) : Effect.as(checking, got)
    }
    if (answer._tag !== "InputRequired") {
      // A server "MUST NOT return `CreateTaskResult`" to a client that did not declare the extension; nor, before, unasked.
      if (name !== Method.CallTool.name || (isTask ? augmented === undefined : !desk.tasks.enabled)) {
        return Effect.fail(invalid(name, `The server answered ${name} with a task, which was not asked for`))
      }
      const { deadline, options } = errand
      const seed = answer._tag === "Task" ? answer.result : answer.result.task
      const { name: tool } = params as CallToolRequestParams
      const created = { seed, line, tool, options, deadline, reports: augmented?.reports }
      const finished = errand.tasked?.(created) ?? desk.finishTask(created) as Effect.Effect<R, ClientError>
      return Effect.map(finished, (result) => ({ result, keep: false }))
    }
    if (rounds >= desk.maxRounds) {
      const message = `${name} was answered with questions more than ${desk.maxRounds} times (maxRounds)`
      return Effect.fail(new ClientError({ reason: new LimitExceeded({ message }), method: name }))
    }
    const { inputRequests, requestState } = answer.result
    if (inputRequests === undefined && requestState === undefined) {
      // "Servers MUST include at least one of `inputRequests` or `requestState` in every `InputRequiredResult` response."
      return Effect.fail(invalid(name, `The server wants input before it answers ${name}, and does not say which`))
    }
    const next = remaining(errand, startedAt)
    if (next === undefined) {
      const message = `No answer to ${name} but questions within its time in all (maxTimeout)`
      return Effect.fail(new ClientError({ reason: new Timeout({ message }), method: name }))
    }
    return Effect.flatMap(desk.answers.fulfil(line, name, inputRequests ?? {}), (inputResponses) => {
      const reply: Reply = {
        ...(Object.keys(inputResponses).length === 0 ? undefined : { inputResponses }),
        // "If the InputRequiredResult does not contain a requestState field, the client MUST NOT include one in the retry."
        ...(requestState === undefined ? undefined : { requestState })
      }
      const { inputResponses: _, requestState: __, ...first } = params as P & Reply
      return round(next, { ...first, ...reply } as P, rounds + 1)
    })
  })

/** Checks what a tool answers, where there is something to check it by. That takes no longer than one more request may. */
const check = <P, R>({ desk, options }: Errand<P, R>, line: Line, params: P, result: unknown, startedAt: number) =>
  checkResult(desk, line, (params as CallToolRequestParams).name, result as CallToolResult, options, startedAt)

/** The same, of a result that has come in another way. */
export const checkResult = (
  desk: Desk,
  line: Line,
  name: string,
  result: CallToolResult,
  options: Pick<RequestOptions, "timeout" | "maxTimeout">,
  startedAt: number
): Effect.Effect<CallToolResult, ClientError> | undefined => {
  const { definitions, keeper } = desk
  const left = () => ({
    timeout: timeLeft(keeper.patience, options, 0).timeout,
    maxTimeout: timeLeft(keeper.patience, options, keeper.now() - startedAt).maxTimeout
  })
  return checked(definitions, desk, line, name, result, left)
}

/** Reads the result of a tool that has come in another way than as the answer to its call. */
export const readResult = (desk: Desk, line: Line, raw: JsonObject): Result.Result<CallToolResult, ClientError> => {
  const { name } = Method.CallTool
  const decoded = decode(Method.CallTool, desk, line, raw)
  if (Result.isFailure(decoded)) {
    return Result.fail(invalid(name, `The result of the task is not valid: ${decoded.failure}`))
  }
  return decoded.success._tag === "Complete"
    ? Result.succeed(withSafeIcons(name, decoded.success.result, desk.warn))
    : Result.fail(invalid(name, "The result of the task is not valid: it is none of a tool"))
}

/** Whether a request may be made twice. What a method does that is not of the protocol, nobody knows here. */
const repeatable = (desk: Desk, method: string, params: unknown, { retry: replay }: RequestOptions): boolean => {
  if (replay !== undefined) return replay
  return method === Method.CallTool.name
    ? desk.definitions.repeatable((params as { name: string }).name)
    : Method.request(method, desk.keeper.last.revision) !== undefined
}

/** Makes one call. */
export const call = <P, R>(
  desk: Desk,
  method: Method.RequestMethod<P, R>,
  params: P,
  options: CallToolOptions = {},
  tasked?: Tasked<R>
): Effect.Effect<R, ClientError> =>
  Effect.suspend(() => {
    const refused = overFor(desk.keeper, method.name) ?? refusal(desk, desk.keeper.last, method)
    if (refused !== undefined) return Effect.fail(refused)
    const { maxTimeout } = options
    const errand = {
      desk,
      method,
      options,
      repeatable: repeatable(desk, method.name, params, options),
      deadline: maxTimeout === undefined ? Infinity : desk.keeper.now() + Duration.toMillis(maxTimeout),
      tasked
    }
    const got = round(errand, params, 0)
    // Only the request era says for how long a result may be kept.
    const mode = method.cacheable && desk.keeper.last.modern ? options.cache ?? "use" : "bypass"
    const read = (result: R): R =>
      method.name === Method.ListTools.name
        ? desk.definitions.read(desk.keeper.last, result as ListToolsResult) as R
        : result
    return mode === "bypass"
      ? Effect.map(got, ({ result }) => read(result))
      : desk.cache.through(method, params, mode, got, read)
  })
