/** The modules of `@skein/testing`, and the exports of `skein/testing` in their place. */

const schema = "a schema of Effect: the type with this name is plain data"

export const rows: ReadonlyArray<readonly [effect: string, skein: string | { readonly missing: string }]> = [
  ["@skein/testing/AuthorizationScenario.AuthorizationScenario", { missing: schema }],
  ["@skein/testing/AuthorizationScenario.Endpoint", { missing: schema }],
  ["@skein/testing/AuthorizationScenario.Fault", { missing: schema }],
  ["@skein/testing/AuthorizationScenario.Rule", { missing: schema }],
  ["@skein/testing/AuthorizationScenario.members", "AuthorizationScenario.members"],
  ["@skein/testing/AuthorizationScenario.respond", "AuthorizationScenario.respond"],
  ["@skein/testing/AuthorizationScenario.rule", "AuthorizationScenario.rule"],
  ["@skein/testing/FaultyAuthorizationServer", "FaultyAuthorizationServer"],
  ["@skein/testing/FaultyServer.http", "FaultyServer.http"],
  ["@skein/testing/FaultyServer.stdio", "FaultyServer.stdio"],
  ["@skein/testing/RawServer", "RawServer"],
  ["@skein/testing/Scenario.Fault", { missing: schema }],
  ["@skein/testing/Scenario.On", { missing: schema }],
  ["@skein/testing/Scenario.Rule", { missing: schema }],
  ["@skein/testing/Scenario.Scenario", { missing: schema }],
  ["@skein/testing/Scenario.cut", "Scenario.cut"],
  ["@skein/testing/Scenario.rule", "Scenario.rule"],
  ["@skein/testing/ScriptedHttpServer.Exchange", { missing: "a script receives one: its type is Exchange" }],
  ["@skein/testing/ScriptedHttpServer.event", "ScriptedHttpServer.event"],
  ["@skein/testing/ScriptedHttpServer.make", "ScriptedHttpServer.make"],
  ["@skein/testing/ScriptedHttpServer.session", "ScriptedHttpServer.session"],
  ["@skein/testing/ScriptedServer", "ScriptedServer"]
]
