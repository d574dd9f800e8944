/**
 * The layers that every call of a client goes through.
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as Method from "@skein/protocol/Method"
import { compose } from "@skein/runtime/Compose"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { ClientError } from "../../ClientError.ts"
import type { Call, Handler, Middleware } from "../../Middleware.ts"
import { augmentWithTask, retryAsTask } from "../calls/legacyTasks/requestTask.ts"
import { awaitTask } from "../calls/tasks/awaitTask.ts"
import type { CallContext, CallHandler, CallLayer, ClientContext, InternalOptions } from "../calls/context.ts"
import { provideInput, visitUrls } from "../calls/inputRounds.ts"
import { refreshParamHeaders } from "../calls/paramHeaders.ts"
import { cacheResponses, readResponse } from "../calls/response.ts"
import { retryLostRequests } from "../calls/retry.ts"
import { sendRequest } from "../calls/send.ts"
import { checkSupport } from "../calls/support.ts"
import { validateOutput } from "../calls/validateOutput.ts"

/**
 * The layers, outermost first. The middleware of the application is outside of them, and the request is sent inside of
 * them. Each layer passes on the calls that it does not concern: most calls pass through all of them and get a plain
 * result.
 */
const layers: ReadonlyArray<CallLayer> = [
  checkSupport,
  cacheResponses,
  // Around the rounds of a call that takes several.
  provideInput,
  awaitTask,
  validateOutput,
  readResponse,
  // Around the attempts of one round.
  visitUrls,
  retryAsTask,
  retryLostRequests,
  // On the connection that was chosen.
  augmentWithTask,
  refreshParamHeaders
]

const handle: CallHandler = compose(layers, sendRequest)

/** Whether a request may be sent twice without harm. Methods outside of the protocol are not repeatable by default. */
const isRepeatable = (client: ClientContext, method: string, params: unknown, { retry }: InternalOptions): boolean => {
  if (retry !== undefined) return retry
  return method === Method.CallTool.name
    ? client.toolCatalog.repeatable((params as { readonly name: string }).name)
    : Method.request(method, client.supervisor.last.revision) !== undefined
}

/** Makes a call through all layers, without the middleware of the application. */
export const call = (
  client: ClientContext,
  method: Method.RequestMethod<unknown, unknown>,
  params: unknown,
  options: InternalOptions
): Effect.Effect<unknown, ClientError> =>
  Effect.suspend(() => {
    const { supervisor } = client
    const { maxTimeout } = options
    const now = supervisor.now()
    const begun: CallContext = {
      client,
      method,
      params,
      options,
      isRepeatable: isRepeatable(client, method.name, params, options),
      deadline: maxTimeout === undefined ? Infinity : now + Duration.toMillis(maxTimeout),
      rounds: 0,
      connection: supervisor.last,
      startedAt: now,
      sentAt: now
    }
    return Effect.map(handle(begun), ({ result }) => result)
  })

/** Puts the middleware of the application around the calls of one client. Applied once per client. */
export const withMiddleware = (client: ClientContext, middleware: ReadonlyArray<Middleware>): Handler =>
  compose(
    middleware,
    ({ method, options, params }: Call) =>
      call(client, method, params, options) as Effect.Effect<JsonObject, ClientError>
  )
