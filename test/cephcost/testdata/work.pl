# Has a process in each directory do the same, and prints how much was done in all and how long that took, in seconds.
#   perl work.pl write|read NAME MIB DIRECTORY...          MiB in pieces of 1 MiB; what is written is brought to the storage. Bytes.
#   perl work.pl create|open|remove NAME SECONDS DIRECTORY...   small files of 4 KiB, NAME-0 and so on. Files.
use strict; use IO::Handle;
my ($what, $name, $much, @directories) = @ARGV;
sub now { open my $f, "<", "/proc/uptime" or die; return (split / /, <$f>)[0] }
my $piece = join "", map { chr rand 256 } 1 .. 4096; $piece x= 256;
my $small = substr $piece, 0, 4096;

my %work = (
	write => sub { my ($d) = @_;
		open my $f, ">", "$d/$name" or die "$d/$name: $!";
		for (1 .. $much) { (syswrite($f, $piece) // 0) == length $piece or die "write: $!" }
		$f->sync or die "sync: $!"; close $f or die "close: $!";
		return $much << 20;
	},
	read => sub { my ($d) = @_; my $bytes = 0;
		open my $f, "<", "$d/$name" or die "$d/$name: $!";
		while (my $got = sysread $f, my $buffer, 1 << 20) { $bytes += $got }
		die "$d/$name has $bytes bytes" if $bytes != $much << 20;
		return $bytes;
	},
	create => sub { my ($d) = @_; my $end = now() + $much; my $n = 0;
		for (; now() < $end; $n++) {
			open my $f, ">", "$d/$name-$n" or die "create: $!";
			syswrite $f, $small or die "write: $!"; $f->sync or die "sync: $!"; close $f or die "close: $!";
		}
		return $n;
	},
	open => sub { my ($d) = @_; my $end = now() + $much; my ($n, $i) = (0, 0);
		for (; now() < $end; $n++, $i++) {
			$i = 0 if !-e "$d/$name-$i";
			open my $f, "<", "$d/$name-$i" or die "open: $!";
			(sysread($f, my $buffer, 4096) // 0) == 4096 or die "read: $!";
		}
		return $n;
	},
	remove => sub { my ($d) = @_; my $n = 0;
		while (unlink "$d/$name-$n") { $n++ }
		return $n;
	},
);
my $begin = now(); my @results;
for my $directory (@directories) {
	pipe my $from, my $to or die;
	if (!fork) { print $to $work{$what}->($directory); close $to; exit 0 }
	close $to; push @results, $from;
}
my $sum = 0;
for my $result (@results) { my $line = <$result>; die "a process failed\n" if !defined $line; $sum += $line }
1 while wait() > 0;
printf "%d %.2f\n", $sum, now() - $begin;
