package metricsaccess

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authentication "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorization "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// reviewTimeout bounds what one request may ask of the API server.
const reviewTimeout = 10 * time.Second

// WithReviews is a provider of filters (metricsserver.Options). A request without a valid bearer token is answered
// with 401, one of a user who may not with 403, and one that could not be judged with 500. The client's rate limit (5
// requests a second) keeps whoever sends tokens at random from burdening the API server.
func WithReviews(config *rest.Config, transport *http.Client) (metricsserver.Filter, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = rest.DefaultQPS, rest.DefaultBurst
	tokens, err := authentication.NewForConfigAndClient(config, transport)
	if err != nil {
		return nil, fmt.Errorf("asking for reviews of tokens: %w", err)
	}
	access, err := authorization.NewForConfigAndClient(config, transport)
	if err != nil {
		return nil, fmt.Errorf("asking for reviews of access: %w", err)
	}
	return func(log logr.Logger, next http.Handler) (http.Handler, error) {
		return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			token, found := strings.CutPrefix(request.Header.Get("Authorization"), "Bearer ")
			if !found || token == "" {
				http.Error(w, "Unauthorized: a bearer token is needed", http.StatusUnauthorized)
				return
			}
			ctx, cancel := context.WithTimeout(request.Context(), reviewTimeout)
			defer cancel()
			who, err := tokens.TokenReviews().Create(ctx, &authenticationv1.TokenReview{
				Spec: authenticationv1.TokenReviewSpec{Token: token},
			}, metav1.CreateOptions{})
			switch {
			case err != nil:
				log.Error(err, "asking the API server who wants the metrics")
				http.Error(w, "the API server could not be asked", http.StatusInternalServerError)
				return
			case !who.Status.Authenticated:
				http.Error(w, "Unauthorized: the API server does not know the token", http.StatusUnauthorized)
				return
			}
			may, err := access.SubjectAccessReviews().Create(ctx, review(&who.Status.User, request), metav1.CreateOptions{})
			switch {
			case err != nil:
				log.Error(err, "asking the API server who may have the metrics")
				http.Error(w, "the API server could not be asked", http.StatusInternalServerError)
			case !may.Status.Allowed || may.Status.Denied:
				http.Error(w, who.Status.User.Username+" may not get "+request.URL.Path, http.StatusForbidden)
			default:
				next.ServeHTTP(w, request)
			}
		}), nil
	}, nil
}

func review(user *authenticationv1.UserInfo, request *http.Request) *authorizationv1.SubjectAccessReview {
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for key, values := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	return &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: request.URL.Path, Verb: strings.ToLower(request.Method)},
	}}
}
