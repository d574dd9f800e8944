/**
 * The operations of an HTTP API as definitions of a server, from its OpenAPI document.
 *
 * @example
 * const pets = openApi(new URL("https://pets.example/openapi.json"), { include: { tags: ["pets"] } })
 * new AsyncServer({ name: "pets", version: "1.0.0" }).use(pets).runStdio()
 */
export * from "./internal/openapi/openApi.ts"
export * from "./internal/openapi/openApiError.ts"
