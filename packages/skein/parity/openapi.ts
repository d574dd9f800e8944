/** Each export of `@skein/openapi` with its counterpart in `skein/openapi`. */
export const rows: ReadonlyArray<readonly [effect: string, skein: string | { readonly missing: string }]> = [
  ["@skein/openapi/HttpApiTools", { missing: "its tools are the endpoints of an HttpApi of Effect" }],
  ["@skein/openapi/OpenApi.layer", "openApi"],
  ["@skein/openapi/OpenApi.list", "listOpenApi"],
  ["@skein/openapi/OpenApiError.OpenApiError", "OpenApiError"],
  ["@skein/openapi/OpenApiError.LoadFailed", "OpenApiError.reason"],
  ["@skein/openapi/OpenApiError.ParseFailed", "OpenApiError.reason"],
  ["@skein/openapi/OpenApiError.UnsupportedVersion", "OpenApiError.reason"],
  ["@skein/openapi/OpenApiError.InvalidDocument", "OpenApiError.reason"],
  ["@skein/openapi/OpenApiError.InvalidReference", "OpenApiError.reason"],
  ["@skein/openapi/OpenApiError.ReferenceNotAllowed", "OpenApiError.reason"],
  ["@skein/openapi/OpenApiError.LimitExceeded", "OpenApiError.reason"],
  ["@skein/openapi/OpenApiError.InvalidOperation", "OpenApiError.reason"]
]
