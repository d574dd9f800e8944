import * as HttpConfig from "@skein/server/HttpConfig"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Hello } from "./hello.ts"

// #region config
// TEA_SHOP_PORT, TEA_SHOP_ALLOWED_HOSTS and so on, from the `ConfigProvider` of the program.
export const Listening = Layer.unwrap(
  Effect.map(HttpConfig.config("TEA_SHOP_"), (options) => NodeHttp.layer({ health: true, ...options }))
).pipe(Layer.provide(Hello))
// #endregion
