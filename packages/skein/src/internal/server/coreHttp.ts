/**
 * Turns the options of HTTP into those of `@skein/server`.
 *
 * Most members are the same. `cors` and `legacySse` are options of modules there, and `onListening` is an effect.
 */
import type * as NodeHttp from "@skein/server/NodeHttp"
import * as Cors from "@skein/server/Cors"
import * as LegacySse from "@skein/server/LegacySse"
import * as Effect from "effect/Effect"
import type { EndpointOptions, HttpMainOptions, HttpOptions } from "./httpOptions.ts"

/** The options of an endpoint with the parts that `@skein/server` makes itself. */
export const endpointOptions = <O extends EndpointOptions>({ cors, legacySse, ...rest }: O) => ({
  ...rest,
  ...(cors === undefined || cors === false ? undefined : { cors: Cors.make(cors === true ? {} : cors) }),
  ...(legacySse === undefined || legacySse === false
    ? undefined
    : { legacySse: LegacySse.make(legacySse === true ? {} : legacySse) })
})

/** The options of a listening server. */
export const listenOptions = (options: HttpOptions): NodeHttp.Options => endpointOptions(options) as never

/** The options of a process. */
export const mainOptions = ({ onListening, ...options }: HttpMainOptions): NodeHttp.MainOptions => ({
  ...listenOptions(options),
  ...(onListening === undefined
    ? undefined
    : { onListening: (at) => Effect.promise(async () => onListening({ host: at.host, port: at.port, url: at.url })) })
})
