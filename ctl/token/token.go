package token

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/periplus/periplus/base/jointoken"
	"github.com/periplus/periplus/ctl/kubectl"
)

const (
	prefix     = "bootstrap-token-"
	secretType = corev1.SecretType("bootstrap.kubernetes.io/token")
	// serversGroup may join as servers.
	serversGroup = "system:bootstrappers:periplus:servers"
	// defaultTTL is that of kubeadm.
	defaultTTL = 24 * time.Hour
)

// New returns the command with its children.
func New() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "token",
		Short: "create, list and delete the tokens with which machines join",
		Long: `A machine joins the cluster with a token: "peri agent --server … --token …". A
token is good for a limited time and any number of machines. Deleting it does not
affect nodes that have joined.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.PersistentFlags().StringVar(&o.kubeconfig, "kubeconfig", "", "configuration of the cluster (default: as kubectl)")
	cmd.AddCommand(o.create(), o.list(), o.delete())
	return cmd
}

type options struct {
	kubeconfig  string
	ttl         time.Duration
	description string
	join        bool
	server      bool
}

// connect returns a client and its configuration, found as kubectl does.
func (o *options) connect() (kubernetes.Interface, *restclient.Config, error) {
	kubectl.UseLocalCluster()
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, nil, err
	}
	c, err := kubernetes.NewForConfig(config)
	return c, config, err
}

func (o *options) create() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create [TOKEN]",
		Short: "make a token and print it",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.ttl < 0 {
				return fmt.Errorf("--ttl: %s is not allowed: must be a time like 2h, or 0 for a token that does not expire", o.ttl)
			}
			t := jointoken.New()
			if len(args) == 1 {
				var err error
				if t, err = jointoken.Parse(args[0]); err != nil {
					return err
				}
			}
			return o.make(cmd.Context(), cmd.OutOrStdout(), t)
		},
	}
	cmd.Flags().DurationVar(&o.ttl, "ttl", defaultTTL, "how long it is valid; 0: until it is deleted")
	cmd.Flags().StringVar(&o.description, "description", "", "what it is for")
	cmd.Flags().BoolVar(&o.server, "server", false, "for servers as well: whoever has it can get all secrets of the cluster")
	cmd.Flags().BoolVar(&o.join, "print-join-command", false, "print the whole command for the machine that joins")
	return cmd
}

func (o *options) make(ctx context.Context, out io.Writer, t jointoken.Token) error {
	c, config, err := o.connect()
	if err != nil {
		return err
	}
	authority, server, err := clusterInfo(ctx, c)
	if apierrors.IsNotFound(err) && restclient.LoadTLSFiles(config) == nil {
		// A cluster that has just started, or another's: what this client trusts.
		authority, server, err = config.CAData, config.Host, nil
	}
	if err != nil {
		return err
	}
	certs, err := jointoken.Certificates(authority)
	if err != nil {
		return err
	}
	t.CAHash = jointoken.HashOf(certs[0])
	data := map[string]string{
		"token-id": t.ID, "token-secret": t.Secret, "usage-bootstrap-authentication": "true", "usage-bootstrap-signing": "true",
	}
	if o.ttl > 0 {
		data["expiration"] = time.Now().UTC().Add(o.ttl).Format(time.RFC3339)
	}
	if o.server {
		data["auth-extra-groups"] = serversGroup
	}
	if o.description != "" {
		data["description"] = o.description
	}
	_, err = c.CoreV1().Secrets(metav1.NamespaceSystem).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: prefix + t.ID, Namespace: metav1.NamespaceSystem}, Type: secretType, StringData: data,
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("a token with the ID %s exists already: delete it first, or leave the choice to peri", t.ID)
	}
	if err != nil {
		return err
	}
	if !o.join {
		fmt.Fprintln(out, t)
		return nil
	}
	role := "agent"
	if o.server {
		role = "server"
	}
	fmt.Fprintf(out, "peri "+role+" --server %s --token %s\n", cmp.Or(server, config.Host), t)
	return nil
}

// clusterInfo reads what machines that join read.
func clusterInfo(ctx context.Context, c kubernetes.Interface) (authority []byte, server string, err error) {
	m, err := c.CoreV1().ConfigMaps(metav1.NamespacePublic).Get(ctx, "cluster-info", metav1.GetOptions{})
	if err != nil {
		return nil, "", err
	}
	info, err := clientcmd.Load([]byte(m.Data["kubeconfig"]))
	if err != nil {
		return nil, "", fmt.Errorf("config map kube-public/cluster-info: %w", err)
	}
	for _, cluster := range info.Clusters {
		return cluster.CertificateAuthorityData, cluster.Server, nil
	}
	return nil, "", errors.New("config map kube-public/cluster-info names no cluster")
}

func (o *options) list() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "show the tokens, without their secrets",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, _, err := o.connect()
			if err != nil {
				return err
			}
			list, err := c.CoreV1().Secrets(metav1.NamespaceSystem).List(cmd.Context(), metav1.ListOptions{
				FieldSelector: fields.OneTermEqualSelector("type", string(secretType)).String(),
			})
			if err != nil {
				return err
			}
			return show(cmd.OutOrStdout(), list.Items, time.Now())
		},
	}
}

func show(out io.Writer, list []corev1.Secret, now time.Time) error {
	slices.SortFunc(list, func(a, b corev1.Secret) int { return strings.Compare(a.Name, b.Name) })
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "ID\tTTL\tEXPIRES\tUSAGES\tDESCRIPTION")
	for _, s := range list {
		ttl, expires := "<forever>", "<never>"
		if until, err := time.Parse(time.RFC3339, string(s.Data["expiration"])); err == nil {
			ttl, expires = duration.HumanDuration(until.Sub(now)), until.Format(time.RFC3339)
			if !now.Before(until) {
				ttl = "<expired>"
			}
		}
		var usages []string
		for _, u := range []string{"authentication", "signing"} {
			if string(s.Data["usage-bootstrap-"+u]) == "true" {
				usages = append(usages, u)
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", s.Data["token-id"], ttl, expires, cmp.Or(strings.Join(usages, ","), "<none>"), cmp.Or(string(s.Data["description"]), "<none>"))
	}
	return w.Flush()
}

func (o *options) delete() *cobra.Command {
	return &cobra.Command{
		Use:   "delete ID|TOKEN…",
		Short: "delete tokens: no machine can join with them any more",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, _, err := o.connect()
			if err != nil {
				return err
			}
			var errs []error
			for _, a := range args {
				id := a
				if t, err := jointoken.Parse(a); err == nil {
					id = t.ID
				}
				if !jointoken.IsID(id) {
					errs = append(errs, fmt.Errorf("%q is neither a token nor the ID of one: \"peri token list\" shows the IDs", a))
					continue
				}
				err := c.CoreV1().Secrets(metav1.NamespaceSystem).Delete(cmd.Context(), prefix+id, metav1.DeleteOptions{})
				switch {
				case apierrors.IsNotFound(err):
					errs = append(errs, fmt.Errorf("there is no token with the ID %s", id))
				case err != nil:
					errs = append(errs, err)
				default:
					fmt.Fprintf(cmd.OutOrStdout(), "token %s deleted\n", id)
				}
			}
			return errors.Join(errs...)
		},
	}
}
