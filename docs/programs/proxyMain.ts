// #region main
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Providers from "@skein/auth/Providers"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { OneInstance, serve } from "./proxy.ts"

const github = Effect.gen(function*() {
  const { upstream } = Providers.github({ scopes: ["read:user"] })
  return {
    ...upstream,
    clientId: yield* Config.String("GITHUB_CLIENT_ID"),
    clientSecret: yield* Config.Redacted("GITHUB_CLIENT_SECRET")
  }
})

NodeRuntime.runMain(Layer.launch(Layer.provide(serve(github), OneInstance)))
// #endregion
