package lsp

// The shapes of the protocol's messages, as far as this server reads and writes
// them; names are the protocol's.

// position counts lines from 0, and units of the negotiated encoding in the line.
type position struct {
	Line      int `json:"line"`
	Character int `json:"character"`
}

type span struct {
	Start position `json:"start"`
	End   position `json:"end"`
}

type location struct {
	URI   string `json:"uri"`
	Range span   `json:"range"`
}

type initializeParams struct {
	RootURI      string `json:"rootUri"`
	Capabilities struct {
		General struct {
			PositionEncodings []string `json:"positionEncodings"`
		} `json:"general"`
		TextDocument struct {
			PublishDiagnostics struct {
				RelatedInformation     bool `json:"relatedInformation"`
				VersionSupport         bool `json:"versionSupport"`
				CodeDescriptionSupport bool `json:"codeDescriptionSupport"`
			} `json:"publishDiagnostics"`
			Hover struct {
				ContentFormat []string `json:"contentFormat"`
			} `json:"hover"`
			Completion struct {
				CompletionItem struct {
					SnippetSupport      bool     `json:"snippetSupport"`
					DocumentationFormat []string `json:"documentationFormat"`
				} `json:"completionItem"`
			} `json:"completion"`
			DocumentSymbol struct {
				Hierarchical bool `json:"hierarchicalDocumentSymbolSupport"`
			} `json:"documentSymbol"`
		} `json:"textDocument"`
	} `json:"capabilities"`
}

type initializeResult struct {
	Capabilities capabilities `json:"capabilities"`
	ServerInfo   serverInfo   `json:"serverInfo"`
}

type serverInfo struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

type capabilities struct {
	PositionEncoding   string            `json:"positionEncoding"`
	TextDocumentSync   syncOptions       `json:"textDocumentSync"`
	HoverProvider      bool              `json:"hoverProvider"`
	CompletionProvider completionOptions `json:"completionProvider"`
	SignatureHelp      signatureOptions  `json:"signatureHelpProvider"`
	DefinitionProvider bool              `json:"definitionProvider"`
	SymbolProvider     bool              `json:"documentSymbolProvider"`
	FoldingProvider    bool              `json:"foldingRangeProvider"`
}

type syncOptions struct {
	OpenClose bool `json:"openClose"`
	Change    int  `json:"change"` // 2: incremental
	Save      bool `json:"save"`
}

type completionOptions struct {
	TriggerCharacters []string `json:"triggerCharacters"`
	ResolveProvider   bool     `json:"resolveProvider"`
}

type signatureOptions struct {
	TriggerCharacters []string `json:"triggerCharacters"`
}

type documentParams struct {
	TextDocument struct {
		URI        string `json:"uri"`
		LanguageID string `json:"languageId"`
		Version    *int32 `json:"version"`
		Text       string `json:"text"`
	} `json:"textDocument"`
}

type changeParams struct {
	documentParams
	ContentChanges []change `json:"contentChanges"`
}

// change replaces a range, or everything where it has none.
type change struct {
	Range *span  `json:"range"`
	Text  string `json:"text"`
}

type positionParams struct {
	documentParams
	Position position `json:"position"`
}

type watchedParams struct {
	Changes []struct {
		URI string `json:"uri"`
	} `json:"changes"`
}

// Severities of diagnostics.
const (
	severityError       = 1
	severityWarning     = 2
	severityInformation = 3
)

type publishParams struct {
	URI         string       `json:"uri"`
	Version     *int32       `json:"version,omitempty"`
	Diagnostics []diagnostic `json:"diagnostics"`
}

type diagnostic struct {
	Range              span             `json:"range"`
	Severity           int              `json:"severity"`
	Code               string           `json:"code,omitempty"`
	CodeDescription    *codeDescription `json:"codeDescription,omitempty"`
	Source             string           `json:"source"`
	Message            string           `json:"message"`
	RelatedInformation []related        `json:"relatedInformation,omitempty"`
}

type codeDescription struct {
	Href string `json:"href"`
}

type related struct {
	Location location `json:"location"`
	Message  string   `json:"message"`
}

type markup struct {
	Kind  string `json:"kind"` // markdown or plaintext
	Value string `json:"value"`
}

type hoverResult struct {
	Contents markup `json:"contents"`
	Range    span   `json:"range"`
}

// Kinds of completions.
const (
	itemMethod   = 2
	itemFunction = 3
	itemField    = 5
	itemVariable = 6
	itemModule   = 9
	itemValue    = 12
	itemKeyword  = 14
	itemFile     = 17
)

type completionList struct {
	IsIncomplete bool             `json:"isIncomplete"`
	Items        []completionItem `json:"items"`
}

type completionItem struct {
	Label         string    `json:"label"`
	Kind          int       `json:"kind"`
	Detail        string    `json:"detail,omitempty"`
	Documentation *markup   `json:"documentation,omitempty"`
	SortText      string    `json:"sortText,omitempty"`
	FilterText    string    `json:"filterText,omitempty"`
	TextEdit      *textEdit `json:"textEdit,omitempty"`
	Data          string    `json:"data,omitempty"` // the key of the item's documentation
}

type textEdit struct {
	Range   span   `json:"range"`
	NewText string `json:"newText"`
}

type signatureHelp struct {
	Signatures      []signatureInfo `json:"signatures"`
	ActiveSignature int             `json:"activeSignature"`
	ActiveParameter int             `json:"activeParameter"`
}

type signatureInfo struct {
	Label         string          `json:"label"`
	Documentation *markup         `json:"documentation,omitempty"`
	Parameters    []parameterInfo `json:"parameters"`
}

type parameterInfo struct {
	Label         string  `json:"label"`
	Documentation *markup `json:"documentation,omitempty"`
}

// Kinds of symbols.
const (
	symbolModule   = 2
	symbolFunction = 12
	symbolVariable = 13
	symbolConstant = 14
	symbolObject   = 19
)

type documentSymbol struct {
	Name           string           `json:"name"`
	Detail         string           `json:"detail,omitempty"`
	Kind           int              `json:"kind"`
	Range          span             `json:"range"`
	SelectionRange span             `json:"selectionRange"`
	Children       []documentSymbol `json:"children,omitempty"`
}

// symbolInformation is documentSymbol for clients that know no hierarchy.
type symbolInformation struct {
	Name     string   `json:"name"`
	Kind     int      `json:"kind"`
	Location location `json:"location"`
}

type foldingRange struct {
	StartLine int    `json:"startLine"`
	EndLine   int    `json:"endLine"`
	Kind      string `json:"kind,omitempty"`
}
